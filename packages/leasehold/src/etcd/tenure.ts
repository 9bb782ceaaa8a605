import { type BothClocks, elapsedMs, readBothClocks } from "../common/both-clocks.js";
import { clocksDisagree } from "../common/clock-rates.js";
import type { LossReason } from "../lease/errors.js";
import type { Clock } from "../common/ports.js";
import type { Grant, Watching } from "../lease/provider.js";
import type { Asked } from "./record.js";

/**
 * One tenure, as its holder knows it: a lease of the core, used for nothing else, and the key that hangs
 * on it.
 */
export class Tenure implements Grant {
  readonly resource: string;
  readonly token: bigint;
  readonly nonce: string;
  readonly leaseId: bigint;
  /** Set once, by the first code that finds it lost; nothing re-opens the tenure. */
  lost: LossReason | undefined;
  /** It was detached, and is renewed no more. */
  isDetached = false;
  /** The last wish that was seen in the key. */
  asked: Asked | undefined;
  /** Tells when somebody asks for the resource, or takes the key away. */
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

  get isBroken(): boolean {
    return this.asked?.broken === true;
  }

  /** Held from the reading on, which was taken before the request was sent, for so long. */
  extend(begun: BothClocks, leaseMs: number): void {
    this.#begun = begun;
    this.#leaseMs = leaseMs;
  }

  /**
   * Each of the two clocks can end it, and so does their disagreement: the steady one stands still while the
   * machine sleeps, and the system's may be wrong when it wakes. Once 0, always 0.
   */
  remainingMs(): number {
    if (this.lost !== undefined) return 0;
    const now = readBothClocks(this.#clock);
    const disagree = clocksDisagree(this.#begun, now, this.#leaseMs);
    const leftMs = disagree ? 0 : this.#leaseMs - elapsedMs(this.#begun, now);
    // Written so that NaN ends it.
    if (leftMs > 0) return leftMs;
    this.lost = disagree ? "clock-fault" : this.isBroken ? "broken" : "expired";
    return 0;
  }
}
