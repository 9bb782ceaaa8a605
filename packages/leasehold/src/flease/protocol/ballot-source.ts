import { numberAt } from "./ballot.js";
import type { Reading } from "./clock.js";

/**
 * The source of one proposer's ballot numbers (3.3): a hybrid logical clock on the plain wall clock. Numbers
 * strictly increase within one incarnation (MUST, repair F19), and exceed those seen from others, so that a
 * slow clock does not lose forever. The upper bound of the clock is never used: a runaway steady clock must
 * not lift ballots over an acceptor's floor.
 */
export class BallotSource {
  #last = 0;
  #seen = 0;

  next(now: Reading): number {
    const own = numberAt(now.wall);
    this.#last = Math.max(own, this.#last + 1, this.#seen + 1);
    return this.#last;
  }

  /** Takes in a number learnt from a refusal. Ignored if it is more than ε ahead of this clock. */
  learn(number: number, now: Reading, skewMs: number): void {
    if (number > this.#seen && number <= numberAt(now.wall + skewMs)) this.#seen = number;
  }

  get last(): number {
    return this.#last;
  }

  get seen(): number {
    return this.#seen;
  }

  clone(): BallotSource {
    const copy = new BallotSource();
    copy.#last = this.#last;
    copy.#seen = this.#seen;
    return copy;
  }
}
