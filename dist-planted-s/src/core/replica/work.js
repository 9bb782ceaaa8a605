import { faults } from "#core-faults";
import { unitsPerStep } from "../state/steps.js";
/** Long reads that go on together. Each has what it has found in memory; the others wait with what their first step has found. */
const longMax = 4;
/**
 * What clients have asked for, in steps and in turns: a turn is a bounded amount of work, whatever was asked. What ends with its first
 * step, as nearly all does, waits for nobody; of the rest a few go on beside each other.
 */
export class Work {
    #fresh = new Set();
    #long = new Set();
    #waiting = new Set();
    get isThere() {
        return this.#fresh.size + this.#long.size > 0;
    }
    /** @param steps must not throw */
    add(steps, isWanted) {
        this.#fresh.add({ steps, isWanted });
    }
    turn(unitsMax, visits) {
        for (let units = 0; (units < unitsMax || faults.readsInOneTurn) && this.isThere;) {
            units += this.#step(this.#fresh, visits);
            units += this.#step(this.#long, visits);
        }
    }
    /** @returns about how much it was */
    #step(jobs, visits) {
        const [job] = jobs;
        if (job === undefined)
            return 0;
        jobs.delete(job);
        const before = visits.count;
        const isOver = !job.isWanted() || job.steps.next().done === true;
        if (!isOver)
            this.#goOn(job);
        else if (jobs === this.#long)
            this.#admit();
        return isOver ? Math.max(1, visits.count - before) : unitsPerStep;
    }
    #goOn(job) {
        if (this.#long.size < longMax)
            this.#long.add(job);
        else
            this.#waiting.add(job);
    }
    #admit() {
        const [next] = this.#waiting;
        if (next === undefined)
            return;
        this.#waiting.delete(next);
        this.#long.add(next);
    }
}
