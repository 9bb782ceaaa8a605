import type { Protocol } from "../../../src/delta/effects.js";
import type { ProtocolEnvironment } from "../../../src/delta/lease-protocol.js";
import type { Stamp } from "../../../src/delta/record/stamp.js";
import type { SimRandom } from "../../kit/random.js";
import type { StorageCounters } from "../counters.js";
import type { Claim, StorageObserver } from "../observer.js";
import type { StoragePlan } from "../plan.js";
import type { SimParty } from "../party.js";

/** What a program of a run stands on: its process, and those who watch it. */
export interface Stage {
  readonly plan: StoragePlan;
  readonly party: SimParty;
  readonly environment: ProtocolEnvironment;
  readonly random: SimRandom;
  readonly counters: StorageCounters;
  /** δ does not hold yet. */
  readonly unstable: boolean;
  tell(told: (observer: StorageObserver) => void): void;
  begin(claim: Claim): void;
  end(claim: Claim): void;
  /** Sends a write with its token to the guarded resource. */
  guard(claim: Claim): void;
  /** Whom `looked` calls a leader. */
  leads(asked: () => boolean): void;
  /** A line of the story. */
  say(text: string): void;
}

/** The Δ of this process, ms. */
export function leaseMsOf({ plan, party }: Stage): number {
  if (!plan.mixedLeases) return plan.leaseMs;
  const part = party.index % 2 === 0 ? 1 : 0.45;
  return Math.max(Math.round(plan.leaseMs * part), 12 * plan.delayMs);
}

export function* sleep(delayMs: number): Protocol<void> {
  yield { kind: "delay", delayMs };
}

export function stampText(stamp: Stamp | undefined): string {
  return stamp === undefined ? "nothing" : `(${stamp.number}, ${stamp.writer}, ${stamp.nonce})`;
}
