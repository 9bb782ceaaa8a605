import { type BothClocks, elapsedMs, readBothClocks } from "../common/both-clocks.js";
import { clocksDisagree } from "../common/clock-rates.js";
import type { LossReason } from "../lease/errors.js";
import type { Clock } from "../common/ports.js";
import type { Grant, Watching } from "../lease/provider.js";
import type { Asked } from "./record.js";

/**
 * One tenure, as its holder knows it: a lease of the core, used for nothing else, and the key attached to it.
 */
export class Tenure implements Grant {
  readonly resource: string;
  readonly token: bigint;
  readonly nonce: string;
  readonly leaseId: bigint;
  /** Set once, by the first code that finds the tenure lost. Nothing clears it. */
  lost: LossReason | undefined;
  /** The tenure was detached and must not be renewed. */
  isDetached = false;
  /**
   * When the tenure was found over: the time for which the program may still rely on earlier promises, ms.
   */
  promisedMs = 0;
  /** The last request seen in the record. */
  asked: Asked | undefined;
  /** Reports requests for the resource, and deletions of the key. */
  watching: Watching | undefined;
  readonly #clock: Clock;
  #begun: BothClocks;
  #leaseMs: number;

  constructor(
    parts: Pick<Tenure, "resource" | "token" | "nonce" | "leaseId">,
    clock: Clock,
    begun: BothClocks,
    leaseMs: number,
  ) {
    this.resource = parts.resource;
    this.token = parts.token;
    this.nonce = parts.nonce;
    this.leaseId = parts.leaseId;
    this.#clock = clock;
    this.#begun = begun;
    this.#leaseMs = leaseMs;
  }

  get lossReason(): LossReason | undefined {
    return this.lost;
  }

  /** The length of the lease from its last renewal, ms. */
  get leaseMs(): number {
    return this.#leaseMs;
  }

  get isBroken(): boolean {
    return this.asked?.broken === true;
  }

  /** Extends the tenure by `leaseMs` from `begun`, which must have been read before the request was sent. */
  extend(begun: BothClocks, leaseMs: number): void {
    this.#begun = begun;
    this.#leaseMs = leaseMs;
  }

  /**
   * Either clock can end the tenure, and so can their disagreement: the steady clock stops while the machine
   * sleeps, and the system clock may be wrong when it wakes up. Once 0, always 0.
   */
  remainingMs(): number {
    if (this.lost !== undefined) return 0;
    const now = readBothClocks(this.#clock);
    const disagree = clocksDisagree(this.#begun, now, this.#leaseMs);
    const leftMs = disagree ? 0 : this.#leaseMs - elapsedMs(this.#begun, now);
    // False for NaN, which ends the tenure.
    if (leftMs > 0) return leftMs;
    this.promisedMs = this.#begun.monotonicMs + this.#leaseMs - now.monotonicMs;
    this.lost = disagree ? "clock-fault" : this.isBroken ? "broken" : "expired";
    return 0;
  }
}
