import { clocksDisagree } from "../../common/clock-rates.js";
import { type BothClocks, elapsedMs } from "../../common/both-clocks.js";
import type { DeltaRecord } from "../record/record.js";

/**
 * The states of a process in Figs. 1 and 4, as types. `contend` leads from `Idle` to `Held`, and renewing and
 * releasing start at a `Held`. Nothing else creates one, so there is no renewal without a hold. A `Held`
 * belongs to one write. Each renewal creates another one, and an operation on a superseded `Held` finds that
 * its record is gone.
 */
export class Idle {
  /** Why the process does not hold. */
  readonly because: "never" | "released" | "lost" | "refused" | "cancelled";
  /** The record that a cancelled renewal may have written: `release` frees it as well. */
  readonly left: DeltaRecord | undefined;
  readonly #state = "idle";

  constructor(because: Idle["because"] = "never", left?: DeltaRecord) {
    this.because = because;
    this.left = left;
  }

  get state(): "idle" {
    return this.#state;
  }
}

export class Held {
  /** The record in the register, written to a majority. */
  readonly record: DeltaRecord;
  /** The start of Δ: read before the write was sent. */
  readonly begun: BothClocks;
  readonly #state = "hold";

  constructor(record: DeltaRecord, begun: BothClocks) {
    this.record = record;
    this.begun = begun;
  }

  get state(): "hold" {
    return this.#state;
  }

  /** Milliseconds left; 0 when it is over, and while the two clocks disagree on the elapsed time. */
  remainingMs(now: BothClocks): number {
    const { leaseMs } = this.record;
    if (clocksDisagree(this.begun, now, leaseMs)) return 0;
    return Math.max(0, leaseMs - elapsedMs(this.begun, now));
  }
}
