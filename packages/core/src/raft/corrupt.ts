import { LeaseholdError } from "leasehold/common";

/**
 * An error for states that are impossible unless a disk has lost or changed its content: the server stops
 * rather than guess.
 */
export function corrupt(why: string): LeaseholdError {
  return new LeaseholdError("LOG_CORRUPT", `raft: ${why}`);
}
