/** Which of the protocol's two assumptions about clocks hold in a run (7.1). */
export const clockModes = ["a", "b", "c", "d", "e", "f", "g"];
export const assumptionsOf = {
    a: { wall: true, rate: false, stepsTogether: false, suspends: true },
    b: { wall: false, rate: true, stepsTogether: false, suspends: false },
    c: { wall: true, rate: true, stepsTogether: false, suspends: false },
    d: { wall: false, rate: false, stepsTogether: false, suspends: true },
    e: { wall: true, rate: false, stepsTogether: true, suspends: true },
    f: { wall: true, rate: true, stepsTogether: true, suspends: false },
    g: { wall: false, rate: true, stepsTogether: false, suspends: true },
};
/** Where true time 0 lies on a perfect wall clock: an arbitrary moment, after the epoch of ballot numbers. */
export const startWallMs = 1_800_000_000_000;
/** What all wall clocks have in common: how far they stepped together. */
export class SharedWall {
    offsetMs = 0;
    /** How often that was backwards. */
    stepsBack = 0;
    stepBy(ms) {
        this.offsetMs += ms;
        if (ms < 0)
            this.stepsBack += 1;
    }
}
/** A wake-up aims this much past its moment, so that rounding cannot make it come too early and be repeated for ever. */
const wakeSlackMs = 0.001;
/** One machine's two clocks, as functions of true time (ms since the run began). */
export class SimClock {
    /** How far the wall clock is off, besides what all share. */
    offsetMs = 0;
    #shared;
    /** System clocks that show whole milliseconds, as `Date.now` does. */
    #wholeMs;
    #steadyMs;
    #sinceMs = 0;
    #rate = 1;
    constructor(shared, steadyMs, wholeMs) {
        this.#shared = shared;
        this.#steadyMs = steadyMs;
        this.#wholeMs = wholeMs;
    }
    get rate() {
        return this.#rate;
    }
    monoAt(timeMs) {
        return this.#steadyMs + (timeMs - this.#sinceMs) * this.#rate;
    }
    wallAt(timeMs) {
        const wall = startWallMs + timeMs + this.#shared.offsetMs + this.offsetMs;
        return this.#wholeMs ? Math.floor(wall) : wall;
    }
    /** From now on the steady clock runs at this rate; 0 stops it, as a suspended machine does. */
    setRate(timeMs, rate) {
        this.#steadyMs = this.monoAt(timeMs);
        this.#sinceMs = timeMs;
        this.#rate = rate;
    }
    /** The steady clock is further at once. */
    skip(timeMs, ms) {
        this.#steadyMs = this.monoAt(timeMs) + ms;
        this.#sinceMs = timeMs;
    }
    /** The true time at which the steady clock will show `mono` if its rate stays; `Infinity` when it never will. */
    timeOfMono(mono) {
        if (this.#rate === 0 || mono === Infinity)
            return Infinity;
        return this.#sinceMs + (mono - this.#steadyMs) / this.#rate + wakeSlackMs;
    }
}
