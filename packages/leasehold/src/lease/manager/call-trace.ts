import type { Lease } from "../types.js";

/** The trace of one call for a lease. */
export interface CallTrace {
  /** The caller begins, or goes on, to wait for another holder, whose name is given where it is known. */
  waits(resource: string, holder?: string): void;
  granted(lease: Lease): void;
}
