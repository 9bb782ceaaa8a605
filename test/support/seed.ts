const seedMax = 2 ** 31 - 1;

/**
 * What random tests draw their seeds from. It is the same in each run, so that a test is never red by chance; `LEASEHOLD_SEED` is another
 * number, or `random`, which draws one and prints it. The configurations of vitest give it to the tests as a number.
 */
export function seedOf(wanted = process.env["LEASEHOLD_SEED"]): number {
  if (wanted === undefined || wanted === "") return 1;
  if (wanted === "random") {
    const seed = 1 + Math.floor(Math.random() * seedMax);
    process.stderr.write(`random tests begin at a new seed: LEASEHOLD_SEED=${seed} repeats them\n`);
    return seed;
  }
  const seed = Number(wanted);
  if (!Number.isSafeInteger(seed) || seed < 1 || seed > seedMax)
    throw new RangeError(`LEASEHOLD_SEED is "random" or a whole number from 1 to ${seedMax}, not ${wanted}`);
  return seed;
}
