import type { Stamp } from "leasehold/inner/delta/record/stamp.js";
import type { SimParty } from "../../kit/party.js";
import type { StoragePlan } from "./plan.js";
import type { Report } from "../../kit/violation.js";
import type { StorageInvariant } from "./invariants.js";

/** A hold, as its process sees it. */
export interface Claim {
  readonly party: SimParty;
  readonly token: bigint;
  /** A reader's hold: it does not exclude other readers. */
  readonly shared: boolean;
  /** The slot of a counted lease, and the limit that its caller gave. */
  readonly place?: { readonly slot: number; readonly limit: number };
  /** The remaining time by the process's present clocks, ms. */
  remainingMs(): number;
}

export interface WorldView {
  readonly plan: StoragePlan;
  readonly nowMs: number;
  /**
   * The time from which all promises of the paper must hold: δ has held for long enough that nothing earlier
   * matters.
   */
  readonly settledMs: number;
  /** The longest wait of a contender, by any clock, ms. */
  readonly waitMs: number;
  /** A store has forgotten and may not count yet, or became silent a while ago. */
  readonly recovering: boolean;
  /** A store has forgotten and does not count yet. */
  readonly uncounted: { readonly name: string; readonly forgotAtMs: number } | undefined;
  /** Unreleased claims; some have expired. */
  readonly claims: ReadonlySet<Claim>;
  readonly processes: readonly SimParty[];
}

export type StorageReport = Report<StorageInvariant>;

/** Events for checkers, which change nothing. */
export interface StorageObserver {
  wants?(party: SimParty, wants: boolean): void;
  /** The caller of an attempt has cancelled. Its writes may remain, and others wait because of them. */
  gaveUp?(): void;
  began?(claim: Claim): void;
  /** A renewal begins, with the remaining time. */
  renewing?(claim: Claim, leftMs: number): void;
  renewed?(claim: Claim, succeeded: boolean): void;
  ended?(claim: Claim): void;
  /** The break of the lease with this token is complete. */
  broken?(token: bigint): void;
  /** The lease with this token was taken over. */
  adopted?(token: bigint): void;
  /** The guarded resource accepted a write. */
  guarded?(claim: Claim): void;
  /** A process crashed or was stopped; `undefined`: a store has forgotten. */
  disturbed?(party: SimParty | undefined): void;
  /** A process leaves the election, voluntarily or by a restart. */
  laidDown?(party: SimParty): void;
  /** Called now and then. */
  looked?(leaders: readonly SimParty[]): void;
  readBegan?(party: SimParty): void;
  readEnded?(party: SimParty, value: Stamp | undefined): void;
  written?(value: Stamp): void;
  proposed?(value: string): void;
  decided?(party: SimParty, value: string): void;
  /** The run is over. */
  over?(): void;
}
