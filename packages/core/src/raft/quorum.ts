import { majorityOf } from "leasehold/common";

/**
 * The greatest value that a majority has reached: of the indices that voters have on disk this is what is
 * replicated, of the rounds that they have answered this is what is confirmed. 0 if nobody votes.
 */
export function reachedByMajority(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((left, right) => right - left);
  return values[majorityOf(values.length) - 1]!;
}
