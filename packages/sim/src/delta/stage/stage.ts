import type { DeltaSettings } from "leasehold/inner/delta/lease-protocol.js";
import type { FarmParts } from "leasehold/inner/delta/paper/parts.js";
import type { DeltaProvider } from "leasehold/inner/delta/provider/provider.js";
import type { Stamp } from "leasehold/inner/delta/record/stamp.js";
import type { Store } from "leasehold/inner/delta/store.js";
import type { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { Detachment } from "leasehold/inner/lease/provider.js";
import type { SimRandom } from "../../kit/random.js";
import type { StorageCounters } from "./counters.js";
import type { Claim, StorageObserver } from "./observer.js";
import type { SimParty } from "../../kit/party.js";
import type { StoragePlan } from "./plan.js";

/** A detached lease. Until it is taken over, which ends the claim, the claim belongs to nobody. */
export interface Ticket extends Detachment {
  readonly resource: string;
  readonly claim: Claim;
}

/** A program's process, its stores and their observers. */
export interface Stage {
  readonly plan: StoragePlan;
  readonly party: SimParty;
  readonly stores: readonly Store[];
  readonly settings: DeltaSettings;
  readonly random: SimRandom;
  readonly counters: StorageCounters;
  /** δ does not hold yet. */
  isUnstable(): boolean;
  tell(told: (observer: StorageObserver) => void): void;
  begin(claim: Claim): void;
  end(claim: Claim): void;
  /** The current holds of programs, and detached leases. */
  readonly claims: Set<Claim>;
  /** Detached leases, which any process may take over. */
  readonly tickets: Set<Ticket>;
  /** Sends a write with its token to the guarded resource. */
  guard(claim: Claim): void;
  /** Registers a function that returns whether this process leads, for the observers' `looked`. */
  leads(asked: () => boolean): void;
  /** Registers the process's clean exit. */
  leaves(close: () => Promise<void>): void;
  /** Reports a permanent failure. */
  failed(error: LeaseholdError): void;
  /** A line of the story. */
  log(text: string): void;
}

/** The stage of the paper's parts. */
export interface PartsStage extends Stage {
  readonly parts: FarmParts;
}

/** The stage of providers, as users' programs use them. */
export interface ProviderStage extends Stage {
  readonly provider: DeltaProvider;
}

/** The Δ of this process, ms. */
export function leaseMsOf({ plan, party }: Stage): number {
  if (!plan.mixedLeases) return plan.leaseMs;
  const part = party.index % 2 === 0 ? 1 : 0.45;
  return Math.max(Math.round(plan.leaseMs * part), 12 * plan.delayMs);
}

export function stampText(stamp: Stamp | undefined): string {
  return stamp === undefined ? "nothing" : `(${stamp.number}, ${stamp.writer}, ${stamp.nonce})`;
}
