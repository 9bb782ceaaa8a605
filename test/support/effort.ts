/**
 * By how much random tests try harder than in `npm test`, which is to be quick: `npm run test:slow -- random` runs them at ten times that,
 * with other scenarios of the slow ones.
 */
export const effort = Number(process.env["LEASEHOLD_EFFORT"] ?? 1);
