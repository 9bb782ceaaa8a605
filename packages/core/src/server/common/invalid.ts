import { LeaseholdError } from "leasehold/common";

/** What is wrong with a server's settings. */
export function invalid(why: string): LeaseholdError {
  return new LeaseholdError("INVALID_CONFIG", why);
}
