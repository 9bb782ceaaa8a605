import type { Stamp } from "leasehold/inner/delta/record/stamp.js";
import type { SimParty } from "../../kit/party.js";
import type { StoragePlan } from "./plan.js";
import type { Report } from "../../kit/violation.js";
import type { StorageInvariant } from "./invariants.js";

/** A holding as its process sees it. */
export interface Claim {
  readonly party: SimParty;
  readonly token: bigint;
  /** A reader's: it does not exclude other readers. */
  readonly shared: boolean;
  /** Of a counted lease: which of its slots, and of how many as its caller has given it. */
  readonly place?: { readonly slot: number; readonly limit: number };
  /** Milliseconds that are left by the process's own clocks, now. */
  remainingMs(): number;
}

export interface WorldView {
  readonly plan: StoragePlan;
  readonly nowMs: number;
  /** From when on all that the paper promises must hold: δ has held for long enough that nothing from before counts. */
  readonly settledMs: number;
  /** How long a contender waits at most, by any clock, ms. */
  readonly waitMs: number;
  /** A store has forgotten, and may not count yet, or has fallen silent a while ago. */
  readonly recovering: boolean;
  /** A store that has forgotten and is not counted yet. */
  readonly uncounted: { readonly name: string; readonly forgotAtMs: number } | undefined;
  /** Claims that were begun and not laid down; some have run out. */
  readonly claims: ReadonlySet<Claim>;
  readonly processes: readonly SimParty[];
}

export type StorageReport = Report<StorageInvariant>;

/** What checkers are told. They change nothing. */
export interface StorageObserver {
  wants?(party: SimParty, wants: boolean): void;
  /** The caller of an attempt wants no more: what that has written may stand, and be waited for. */
  gaveUp?(): void;
  began?(claim: Claim): void;
  /** A renewal begins. `leftMs`: what was left then. */
  renewing?(claim: Claim, leftMs: number): void;
  renewed?(claim: Claim, succeeded: boolean): void;
  ended?(claim: Claim): void;
  /** The guarded resource took a write. */
  guarded?(claim: Claim): void;
  /** A process crashed or was stopped; `undefined`: a store has forgotten. */
  disturbed?(party: SimParty | undefined): void;
  /** A process takes no part in the election any more, of its own will, or begins anew. */
  laidDown?(party: SimParty): void;
  /** Now and then. */
  looked?(leaders: readonly SimParty[]): void;
  readBegan?(party: SimParty): void;
  readEnded?(party: SimParty, value: Stamp | undefined): void;
  written?(value: Stamp): void;
  proposed?(value: string): void;
  decided?(party: SimParty, value: string): void;
  /** The run is over. */
  over?(): void;
}
