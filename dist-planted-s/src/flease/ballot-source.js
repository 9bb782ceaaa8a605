import { faults } from "#faults";
import { numberAt } from "./ballot.js";
/**
 * Where one proposer's ballot numbers come from (3.3): a hybrid logical clock on the plain wall clock. Strictly
 * increasing in one incarnation (MUST, repair F19), and above what others were seen to use, so that a slow clock does
 * not lose for ever. Never from the upper bound: a runaway steady clock must not lift it over an acceptor's floor.
 */
export class BallotSource {
    #last = 0;
    #seen = 0;
    next(now) {
        const own = numberAt(faults.ballotsFromUpperClock ? now.hi : now.wall);
        this.#last = faults.ballotsNotIncreasing ? own : Math.max(own, this.#last + 1, this.#seen + 1);
        return this.#last;
    }
    /** A number learnt from a refusal; one that the own clock, give or take ε, has not reached is not believed. */
    learn(number, now, skewMs) {
        if (number > this.#seen && number <= numberAt(now.wall + skewMs))
            this.#seen = number;
    }
    get last() {
        return this.#last;
    }
    get seen() {
        return this.#seen;
    }
    clone() {
        const copy = new BallotSource();
        copy.#last = this.#last;
        copy.#seen = this.#seen;
        return copy;
    }
}
