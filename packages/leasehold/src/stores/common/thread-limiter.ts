import { LeaseholdError } from "../../lease/errors.js";

/**
 * The maximum number of operations queued at one disk: those that a driver has in flight at one store, and
 * abandoned ones.
 */
export const operationsMax = 256;

/** Node's default number of threads for file operations. */
const threadsDefault = 4;

/** The limiters of all open stores on files. A closed one counts as long as one of its calls is running. */
const limiters = new Set<ThreadLimiter>();

/**
 * The number of Node's threads that one store may use at the same time. File operations on a dead server hang
 * for ever and keep their thread, so stores must never take so many that the farm's other stores or the rest
 * of the program get none. All stores together use all threads but one, shared equally, and each has at least
 * one.
 */
function threadsEach(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? threadsDefault) || threadsDefault;
  return Math.max(1, Math.floor((threads - 1) / limiters.size));
}

/**
 * Runs calls to the disk, at most as many at a time as the store may use threads. Others are queued in order,
 * up to a bound.
 */
export class ThreadLimiter {
  readonly #atOnceMax: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #isClosed = false;

  /** `atOnceMax` is for stores whose calls must not run concurrently. */
  constructor({ atOnceMax = Infinity, waitingMax = operationsMax } = {}) {
    this.#atOnceMax = atOnceMax;
    this.#waitingMax = waitingMax;
    limiters.add(this);
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1;
    else if (this.#waiting.length < this.#waitingMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `it hangs: ${this.#waitingMax} operations are already queued`,
      );
    try {
      return await call();
    } finally {
      this.#end();
    }
  }

  /** Gives the store's threads to other stores. Running and queued calls are still completed. */
  close(): void {
    this.#isClosed = true;
    if (this.#running === 0) limiters.delete(this);
  }

  get #atOnce(): number {
    return Math.min(this.#atOnceMax, threadsEach());
  }

  /** After another store has been opened, more calls of this one may be running than its share of threads. */
  #end(): void {
    const next = this.#running > this.#atOnce ? undefined : this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
    if (this.#isClosed && this.#running === 0) limiters.delete(this);
  }
}
