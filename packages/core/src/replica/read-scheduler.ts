import { NumberMap } from "leasehold/common";
import { type Steps, unitsPerStep, type Visits } from "../state/steps.js";

/**
 * Number of concurrent long reads. Each keeps its results in memory; the others wait with the results of
 * their first step.
 */
const longMax = 4;

/** Reads, by asker. */
type Jobs = NumberMap<Steps<void>>;

/**
 * Clients' reads, in steps and turns: a turn is a bounded amount of work for any request. A read that ends
 * with its first step, as nearly all do, waits for no other. A few of the rest run concurrently.
 */
export class ReadScheduler {
  readonly #fresh: Jobs = new NumberMap();
  readonly #long: Jobs = new NumberMap();
  readonly #waiting: Jobs = new NumberMap();

  get isThere(): boolean {
    return this.#fresh.size + this.#long.size > 0;
  }

  /** Number of reads kept. */
  get size(): number {
    return this.#fresh.size + this.#long.size + this.#waiting.size;
  }

  /** @param steps must not throw */
  add(asker: number, steps: Steps<void>): void {
    this.#fresh.set(asker, steps);
  }

  /** The asker is gone. */
  drop(asker: number): void {
    this.#fresh.delete(asker);
    this.#waiting.delete(asker);
    if (this.#long.delete(asker)) this.#admit();
  }

  turn(unitsMax: number, visits: Visits): void {
    for (let units = 0; units < unitsMax && this.isThere;) {
      units += this.#step(this.#fresh, visits);
      units += this.#step(this.#long, visits);
    }
  }

  /** @returns the approximate amount of work */
  #step(jobs: Jobs, visits: Visits): number {
    const job = jobs.first();
    if (job === undefined) return 0;
    const [asker, steps] = job;
    jobs.delete(asker);
    const before = visits.count;
    if (steps.next().done !== true) {
      this.#goOn(asker, steps);
      return unitsPerStep;
    }
    if (jobs === this.#long) this.#admit();
    return Math.max(1, visits.count - before);
  }

  #goOn(asker: number, steps: Steps<void>): void {
    if (this.#long.size < longMax) this.#long.set(asker, steps);
    else this.#waiting.set(asker, steps);
  }

  #admit(): void {
    const next = this.#waiting.first();
    if (next === undefined) return;
    const [asker, steps] = next;
    this.#waiting.delete(asker);
    this.#long.set(asker, steps);
  }
}
