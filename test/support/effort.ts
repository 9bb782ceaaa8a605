/**
 * The factor by which random tests try harder than in `npm test`, which has to be quick. `npm run test:slow
 * -- random` runs them at ten times the effort, with further slow scenarios.
 */
export const effort = Number(process.env["LEASEHOLD_EFFORT"] ?? 1);
