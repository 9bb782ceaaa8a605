import { LeaseholdError } from "../../lease/errors.js";

/**
 * Operations that may be queued at one disk: those that a driver has in flight at one store, and abandoned
 * ones.
 */
export const operationsMax = 256;

/** Node's default number of threads for files. */
const threadsDefault = 4;

/** The limiters of all open stores on files. A closed one counts while a call is still running. */
const limiters = new Set<ThreadLimiter>();

/**
 * Calls of one store that may use Node's threads at once. File operations on a dead server hang for ever and
 * keep their thread: stores must never take so many that the farm's other stores, and the rest of the
 * program, get none. So they share all but one equally, and each has at least one.
 */
function threadsEach(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? threadsDefault) || threadsDefault;
  return Math.max(1, Math.floor((threads - 1) / limiters.size));
}

/**
 * Runs calls to the disk, as many at once as there are threads for; others are queued in order, up to a
 * bound.
 */
export class ThreadLimiter {
  readonly #atOnceMax: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #isClosed = false;

  /** `atOnceMax`: for stores whose calls must not run concurrently. */
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

  /** Gives its threads to other stores. Running and queued calls still end. */
  close(): void {
    this.#isClosed = true;
    if (this.#running === 0) limiters.delete(this);
  }

  get #atOnce(): number {
    return Math.min(this.#atOnceMax, threadsEach());
  }

  /** When another store has been opened, more calls of this one may run than it has threads for. */
  #end(): void {
    const next = this.#running > this.#atOnce ? undefined : this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
    if (this.#isClosed && this.#running === 0) limiters.delete(this);
  }
}
