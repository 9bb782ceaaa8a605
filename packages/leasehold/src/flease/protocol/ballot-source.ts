import { numberAt } from "./ballot.js";
import type { Reading } from "./clock.js";

/**
 * The source of one proposer's ballot numbers (3.3): a hybrid logical clock on the plain wall clock. Strictly
 * increasing in one incarnation (MUST, repair F19), and above what others were seen to use, so that a slow
 * clock does not lose for ever. Never from the upper bound: a runaway steady clock must not lift it over an
 * acceptor's floor.
 */
export class BallotSource {
  #last = 0;
  #seen = 0;

  next(now: Reading): number {
    const own = numberAt(now.wall);
    this.#last = Math.max(own, this.#last + 1, this.#seen + 1);
    return this.#last;
  }

  /** A number learnt from a refusal. It is ignored if the own clock, give or take ε, has not reached it. */
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
