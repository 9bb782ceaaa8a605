import { majorityOf } from "leasehold/common";

/**
 * The greatest value that a majority has reached: the replicated index, of the indices that voters have on
 * disk; the confirmed round, of the rounds they have answered. 0 without voters.
 */
export function reachedByMajority(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((left, right) => right - left);
  return values[majorityOf(values.length) - 1]!;
}
