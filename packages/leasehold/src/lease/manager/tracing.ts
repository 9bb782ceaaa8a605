import type { Lease } from "../types.js";
import type { LossReason } from "../errors.js";
import type { AcquireSpec } from "./acquire-spec.js";

/**
 * What traces a participant's leases (`leasehold/traces`). Without it a call reads one field more, and the
 * rest of this is asked only where a caller waits, a renewal is late or a lease ends.
 */
export interface LeaseTracing {
  /** Runs a call for a lease: `run` gets the spec with the data and the trace of this call. */
  call<T extends Lease | undefined>(spec: AcquireSpec, run: (spec: AcquireSpec) => Promise<T>): Promise<T>;
  /** Runs a call that acquires, works and releases. `resource` is absent for several. */
  work<T>(name: "using" | "lead", resource: string | undefined, run: () => Promise<T>): Promise<T>;
  /** The lease was not renewed in time. Reported once, until it was renewed or has ended. */
  late(lease: Lease, remainingMs: number, error: unknown): void;
  /** A lease that was late was renewed. */
  inTime(lease: Lease): void;
  /** The lease has ended: runs what takes it back. */
  ended(
    lease: Lease,
    reason: LossReason,
    takeBack: () => Promise<void> | undefined,
  ): Promise<void> | undefined;
}
