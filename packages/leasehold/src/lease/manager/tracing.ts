import type { Lease } from "../types.js";
import type { LossReason } from "../errors.js";
import type { AcquireSpec } from "./acquire-spec.js";

/**
 * The hooks that trace a participant's leases (`leasehold/traces`). Without them, a call costs one additional
 * read of a field; the other checks occur only when a caller waits, a renewal is late or a lease ends.
 */
export interface LeaseTracing {
  /** Runs a call for a lease. `run` gets the spec with this call's data and trace. */
  call<T extends Lease | undefined>(spec: AcquireSpec, run: (spec: AcquireSpec) => Promise<T>): Promise<T>;
  /** Runs a call that acquires, works and releases. `resource` is absent if there are several. */
  work<T>(name: "using" | "lead", resource: string | undefined, run: () => Promise<T>): Promise<T>;
  /** The lease was not renewed in time. Called once, until the lease is renewed or ends. */
  late(lease: Lease, remainingMs: number, error: unknown): void;
  /** A lease that was late was renewed. */
  inTime(lease: Lease): void;
  /** The lease has ended. Runs the function that returns it. */
  ended(
    lease: Lease,
    reason: LossReason,
    takeBack: () => Promise<void> | undefined,
  ): Promise<void> | undefined;
}
