import type { World } from "../../common/ports.js";
import type { LeaseLostError, LossReason } from "../errors.js";
import type { Upkeep } from "../provider.js";
import type { HolderHint, Lease } from "../types.js";

/** An exclusive lease as the waist keeps it. */
export interface Held extends Lease {
  hasWork: boolean;
  readonly loss: LeaseLostError | undefined;
  /** Why it ended; `undefined` while it is held. */
  readonly ended: LossReason | undefined;
  resign(reason: unknown): void;
  /**
   * Applies these terms from now on: `maxHold` counts from here, and so does the ttl if it is not renewed.
   */
  keep(terms: Upkeep): Promise<void>;
  /**
   * Makes the lease's release wait for this promise, which never rejects. So a program that exits after the
   * release leaves behind none of the leases that were acquired as intermediate steps.
   */
  releaseWith(others: Promise<unknown>): void;
}

/**
 * The exclusive leases of one participant, from which the other forms are built. All options except the name
 * and the wait are already bound.
 */
export interface ExclusiveLeases {
  readonly world: World;
  readonly ttlMs: number;
  /** One attempt: `undefined` if another participant has it. */
  try(resource: string, signal: AbortSignal | undefined): Promise<Held | undefined>;
  /** Waits for at most `waitMs`. */
  wait(resource: string, waitMs: number, signal: AbortSignal | undefined): Promise<Held>;
  /** A hint. */
  query(resource: string, timeoutMs: number): Promise<HolderHint>;
}
