import { clocksDisagree } from "../common/clock-rates.js";
import type { LossReason } from "../lease/errors.js";
import { type BothClocks, elapsedMs } from "../common/both-clocks.js";
import type { Asked } from "./record/record.js";

/** A record at a majority: held for Δ from the start of the write. */
export interface Hold {
  /** Read before the write was sent. */
  readonly begun: BothClocks;
  readonly leaseMs: number;
}

/** One uninterrupted tenure, in the hands of its holder. An algorithm may extend it with its own state. */
export class Tenure {
  readonly resource: string;
  /** The fencing token. */
  readonly token: bigint;
  /** Extended by each renewal. */
  hold: Hold;
  /** Set once, by the code that first finds it lost, and never cleared. */
  lost: LossReason | undefined;
  /** Whether its holder has detached it, and no longer renews. */
  isDetached = false;
  /**
   * Set when it is found over early: until this time, on the steady clock, the program may rely on the
   * promise it was given.
   */
  promisedUntilMs = 0;
  /** Another participant's request for the resource. */
  asked: Asked | undefined;

  constructor(resource: string, token: bigint, hold: Hold) {
    this.resource = resource;
    this.token = token;
    this.hold = hold;
  }

  /** Whether it was broken: then it can't be renewed. */
  get isBroken(): boolean {
    return this.asked?.broken === true;
  }

  /**
   * Milliseconds left. Each of the two clocks can end it, and so does a disagreement between them: the steady
   * clock stands still while the machine sleeps, and the system clock may be wrong when it wakes. Once 0, it
   * stays 0.
   */
  remainingMs(now: BothClocks): number {
    if (this.lost !== undefined) return 0;
    const { begun, leaseMs } = this.hold;
    const disagree = clocksDisagree(begun, now, leaseMs);
    const leftMs = disagree ? 0 : leaseMs - elapsedMs(begun, now);
    if (leftMs > 0) return leftMs;
    this.promisedUntilMs = begun.monotonicMs + leaseMs;
    this.lost = disagree ? "clock-fault" : this.isBroken ? "broken" : "expired";
    return 0;
  }
}
