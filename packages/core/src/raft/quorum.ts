import { majorityOf } from "leasehold/common";

/**
 * Returns the greatest value that a majority has reached. For the indices that voters have on disk, that is
 * the replicated index; for the rounds they have answered, the confirmed round. 0 without voters.
 */
export function reachedByMajority(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((left, right) => right - left);
  return values[majorityOf(values.length) - 1]!;
}
