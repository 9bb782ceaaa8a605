const seedMax = 2 ** 31 - 1;

/**
 * The number from which random tests draw their seeds. It is the same in each run, so that no test fails by
 * chance. `LEASEHOLD_SEED` sets another number, or is `random`, which draws one and prints it. The vitest
 * configurations pass it to the tests as a number.
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
