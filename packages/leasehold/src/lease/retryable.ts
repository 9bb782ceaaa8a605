import { type ErrorCode, LeaseholdError } from "./errors.js";

const retryable: ReadonlySet<ErrorCode> = new Set([
  "NO_QUORUM",
  "TIMEOUT",
  "RESOURCES_FULL",
  "OVERLOADED",
  "CLOCK_SKEW",
  "UNREACHABLE",
  "LEASE_BROKEN",
]);

/** Whether an error may be transient; an attempt is retried after no other. */
export function mayPass(error: unknown): boolean {
  return error instanceof LeaseholdError && retryable.has(error.code);
}
