import { type BothClocks, elapsedMs } from "../../common/both-clocks.js";
import { relied } from "../../common/clock-rates.js";
import type { RaftSettings } from "./options.js";

interface Sent {
  readonly round: number;
  readonly at: BothClocks;
}

/** A round is noted if so much of the lease has passed since the last one. */
const notesPerLease = 16;

/** The leader steps down long before so many are unanswered. */
const notesMax = 64;

/**
 * How long a leader knows by its clock that nobody else leads (thesis 6.4.1). Each voter holds to the leader
 * for `holdMs` by its own clock after it has heard it (`election-timer.ts`), and heard what it has answered
 * after that was sent. So from the *sending* of the newest round that a majority has answered, no other
 * leader is elected for that long, less what the two clocks may differ by.
 *
 * Three things rest on this being so: that clocks run within ρ of real time, that a server that begins again
 * first waits for as long, and that a leader which has told another one to stand does not count on its own
 * time any more, as that word may be late.
 */
export class LeaderLease {
  readonly #ms: number;
  /** Oldest first. The first is the newest that a majority had answered when it was looked at last. */
  readonly #sent: Sent[] = [];
  #isOver = false;

  constructor({ holdMs, clockRateError }: RaftSettings) {
    this.#ms = relied(holdMs, clockRateError);
  }

  /** A round of heartbeats leaves, after this reading of the clocks. */
  sent(round: number, at: BothClocks): void {
    const last = this.#sent.at(-1);
    // An answer to a later round then counts from the earlier one.
    if (last !== undefined && elapsedMs(last.at, at) < this.#ms / notesPerLease) return;
    this.#sent.push({ round, at });
    if (this.#sent.length > notesMax) this.#sent.shift();
  }

  /** For the rest of its term the leader is confirmed by rounds alone. */
  end(): void {
    this.#isOver = true;
  }

  /**
   * Whether nobody else leads by now.
   *
   * @param round the newest that a majority has answered
   */
  lasts(round: number, now: BothClocks): boolean {
    while (this.#sent.length > 1 && this.#sent[1]!.round <= round) this.#sent.shift();
    const [newest] = this.#sent;
    if (this.#isOver || newest === undefined || newest.round > round) return false;
    // By the clock that went further: the steady one stands still in a machine that is suspended.
    return elapsedMs(newest.at, now) < this.#ms;
  }
}
