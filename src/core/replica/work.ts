import { faults } from "#core-faults";
import { type Steps, unitsPerStep, type Visits } from "../state/steps.js";

/** Long reads that go on together. Each has what it has found in memory; the others wait with what their first step has found. */
const longMax = 4;

interface Job {
  readonly steps: Steps<void>;
  /** Somebody waits for it. */
  readonly isWanted: () => boolean;
}

/**
 * What clients have asked for, in steps and in turns: a turn is a bounded amount of work, whatever was asked. What ends with its first
 * step, as nearly all does, waits for nobody; of the rest a few go on beside each other.
 */
export class Work {
  readonly #fresh = new Set<Job>();
  readonly #long = new Set<Job>();
  readonly #waiting = new Set<Job>();

  get isThere(): boolean {
    return this.#fresh.size + this.#long.size > 0;
  }

  /** @param steps must not throw */
  add(steps: Steps<void>, isWanted: () => boolean): void {
    this.#fresh.add({ steps, isWanted });
  }

  turn(unitsMax: number, visits: Visits): void {
    for (let units = 0; (units < unitsMax || faults.readsInOneTurn) && this.isThere;) {
      units += this.#step(this.#fresh, visits);
      units += this.#step(this.#long, visits);
    }
  }

  /** @returns about how much it was */
  #step(jobs: Set<Job>, visits: Visits): number {
    const [job] = jobs;
    if (job === undefined) return 0;
    jobs.delete(job);
    const before = visits.count;
    const isOver = !job.isWanted() || job.steps.next().done === true;
    if (!isOver) this.#goOn(job);
    else if (jobs === this.#long) this.#admit();
    return isOver ? Math.max(1, visits.count - before) : unitsPerStep;
  }

  #goOn(job: Job): void {
    if (this.#long.size < longMax) this.#long.add(job);
    else this.#waiting.add(job);
  }

  #admit(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#long.add(next);
  }
}
