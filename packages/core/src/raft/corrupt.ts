import { LeaseholdError } from "leasehold/common";

/** What cannot be unless a disk has lost or changed what was on it: the server stops, and does not guess. */
export function corrupt(why: string): LeaseholdError {
  return new LeaseholdError("LOG_CORRUPT", `raft: ${why}`);
}
