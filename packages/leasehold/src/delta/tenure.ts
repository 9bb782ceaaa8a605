import { clocksDisagree } from "../common/clock-rates.js";
import type { LossReason } from "../lease/errors.js";
import { type BothClocks, elapsedMs } from "../common/both-clocks.js";
import type { Asked } from "./record/record.js";

/** A majority has it: held for Δ from the start of the write. */
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
  /** Moved by each renewal. */
  hold: Hold;
  /** Set once, by the first code that finds it lost; nothing undoes it. */
  lost: LossReason | undefined;
  /** Its holder has detached it, and renews no more. */
  isDetached = false;
  /** When it was found over: until then, on the steady clock, the program may rely on what it was promised. */
  promisedUntilMs = 0;
  /** Another participant wants the resource. */
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
   * Milliseconds that are left. Each of the two clocks can end it, and so does their disagreement: the steady
   * clock stands still while the machine sleeps, and the system clock may be wrong when it wakes. Once 0,
   * always 0.
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
