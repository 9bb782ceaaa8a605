/** Digits of a number that only increments: a longer one is damaged. */
export const digitsMax = 30;

/** A number that may be greater than a double holds, as text. */
export function bigintOf(value: unknown): bigint | undefined {
  if (typeof value !== "string" || value.length > digitsMax || !/^\d+$/.test(value)) return undefined;
  return BigInt(value);
}

/** The upper bound keeps calculations with it exact. */
export function isDuration(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER / 4;
}

/** 0 for none. */
export function greatestBigint(numbers: readonly bigint[]): bigint {
  return numbers.reduce((a, b) => (a > b ? a : b), 0n);
}
