import { LeaseholdError } from "../../lease/errors.js";

/** Work in steps. Each step visits a bounded number of items, in a fraction of a millisecond. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Entries, or changes, visited in one step: about a tenth of a millisecond. */
export const looksPerStep = 1_000;

/**
 * Jobs queued for one connection: its peer's concurrent calls, and a page for each of its watches. Further
 * jobs are refused.
 */
const jobsPerLinkMax = 64;

interface Job {
  readonly steps: Steps<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Low-priority work that delays no lease. Each connection has a queue. The runner does one step for each
 * queue in rotation, as time permits, so a busy connection delays only itself.
 */
export class FairWork<L> {
  readonly #wake: () => void;
  /** In round-robin order. */
  readonly #queues = new Map<L, Job[]>();

  /** @param wake is called when there is work */
  constructor(wake: () => void) {
    this.#wake = wake;
  }

  get isIdle(): boolean {
    return this.#queues.size === 0;
  }

  /** Rejects with the error of a step, when the connection has too many jobs queued, or when it closes. */
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

  /** The connection's answers are no longer needed. */
  drop(link: L): void {
    const jobs = this.#queues.get(link) ?? [];
    this.#queues.delete(link);
    for (const { reject } of jobs) reject(new LeaseholdError("UNREACHABLE", "the connection is gone"));
  }

  dropAll(): void {
    for (const link of this.#queues.keys()) this.drop(link);
  }

  /** Does one step, and then more while there are any and `goOn()` is true. */
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
    // A step may have ended its own connection.
    if (this.#queues.get(link) !== queue) return;
    this.#queues.delete(link);
    if (queue.length > 0) this.#queues.set(link, queue);
  }
}
