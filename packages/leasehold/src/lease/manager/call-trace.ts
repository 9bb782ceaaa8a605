import type { Lease } from "../types.js";

/** The trace of one call for a lease. */
export interface CallTrace {
  /** Called when the caller begins or continues to wait for another holder; its name is given if known. */
  waits(resource: string, holder?: string): void;
  granted(lease: Lease): void;
}
