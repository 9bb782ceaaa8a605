import { LeaseholdError } from "../../lease/errors.js";

/**
 * Work in steps. Each step looks at a bounded number of things, so that it takes a fraction of a millisecond.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Entries, or changes, that one step looks at: some tenth of a millisecond. */
export const looksPerStep = 1_000;

/**
 * What one connection may have waiting here: what its peer may ask at the same time, and a page for each of
 * its watches. Further work is refused.
 */
const jobsPerLinkMax = 64;

interface Job {
  readonly steps: Steps<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Work for others that nobody's lease may wait for. It waits in a queue for each connection, and its runner
 * does one step for each of them in turn, as many as there is time for: who asks much waits for itself.
 */
export class FairWork<L> {
  readonly #wake: () => void;
  /** In the order of their turns. */
  readonly #queues = new Map<L, Job[]>();

  /** `wake` is called when there is something to do. */
  constructor(wake: () => void) {
    this.#wake = wake;
  }

  get isIdle(): boolean {
    return this.#queues.size === 0;
  }

  /** Rejects with what the steps throw, and when the connection has too much waiting here or goes. */
  add<T>(link: L, steps: Steps<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const job = { steps, resolve: resolve as (value: unknown) => void, reject };
      const queue = this.#queues.get(link);
      if (queue === undefined) this.#queues.set(link, [job]);
      else if (queue.length < jobsPerLinkMax) queue.push(job);
      else reject(new LeaseholdError("UNREACHABLE", `${jobsPerLinkMax} calls already wait for their turn`));
      this.#wake();
    });
  }

  /** Nobody waits for the answers any more. */
  drop(link: L): void {
    const jobs = this.#queues.get(link) ?? [];
    this.#queues.delete(link);
    for (const { reject } of jobs) reject(new LeaseholdError("UNREACHABLE", "the connection is gone"));
  }

  dropAll(): void {
    for (const link of this.#queues.keys()) this.drop(link);
  }

  /** Does one step, and then more as long as there are any and `goOn` says so. */
  run(goOn: () => boolean): void {
    do {
      const [next] = this.#queues;
      if (next === undefined) return;
      const [link, jobs] = next;
      this.#step(link, jobs);
    } while (goOn());
  }

  #step(link: L, queue: Job[]): void {
    const job = queue[0]!;
    let ended = true;
    try {
      const { done, value } = job.steps.next();
      ended = done === true;
      if (ended) job.resolve(value);
    } catch (error) {
      job.reject(error);
    }
    if (ended) queue.shift();
    // A step may have ended the connection that it was for.
    if (this.#queues.get(link) !== queue) return;
    this.#queues.delete(link);
    if (queue.length > 0) this.#queues.set(link, queue);
  }
}
