import { type BothClocks, elapsedMs } from "../../common/both-clocks.js";
import { type Protocol, lookAtClocks } from "../effects.js";
import { contend } from "./contend.js";
import { release, renewEventuallyND } from "./renew.js";
import type { Site } from "./site.js";
import { type Held, Idle } from "./states.js";

/** A holder renews after this fraction of Δ. */
const renewPart = 1 / 3;

/**
 * The leader oracle (Fig. 7): contend; be leader; renew every Δ or sooner; when a renewal fails, stop leading
 * and contend again. Once delays are bounded, exactly one correct process is leader forever.
 */
export class LeaderOracle {
  readonly #site: Site;
  #state: Held | Idle = new Idle();

  constructor(site: Site) {
    this.#site = site;
  }

  /** Needs a fresh reading of the clocks: an old one proves nothing. */
  isLeader(now: BothClocks): boolean {
    return this.#state.state === "hold" && this.#state.remainingMs(now) > 0;
  }

  /** The hold on which this process's leadership rests. */
  get state(): Held | Idle {
    return this.#state;
  }

  /** Runs until cancelled, and then gives up its leadership. */
  *run(): Protocol<Idle> {
    for (;;) {
      this.#state = yield* contend(this.#site, new Idle());
      if (this.#state.state === "idle") return this.#state;
      while (this.#state.state === "hold") {
        const held: Held = this.#state;
        const { now } = yield lookAtClocks;
        const delayMs = this.#site.leaseMs * renewPart - elapsedMs(held.begun, now);
        const { cancelled } = yield { kind: "delay", delayMs: Math.max(0, delayMs) };
        if (cancelled) {
          this.#state = new Idle("released");
          return yield* release(this.#site, held);
        }
        this.#state = yield* renewEventuallyND(this.#site, held);
        if (this.#state.state === "idle" && this.#state.because === "cancelled")
          return yield* release(this.#site, held, this.#state);
      }
    }
  }
}
