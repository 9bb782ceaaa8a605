import { LeaseholdError } from "../../lease/errors.js";

/**
 * Operations that may wait for their turn at one disk: what a driver has under way at one store, and its
 * abandoned ones.
 */
export const operationsMax = 256;

/** Threads that Node has for files, unless it is told otherwise. */
const threadsDefault = 4;

/**
 * Of all stores on files that this process has open. A closed one counts while it still has a call under
 * way.
 */
const gates = new Set<Gate>();

/**
 * How many calls of one store may use Node's threads at once. File operations on a dead server hang for
 * ever and keep their thread: stores must never take so many that those of a farm that answer, and the rest
 * of the program, get none. So they share all but one equally, and each has one at least.
 */
function threadsEach(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? threadsDefault) || threadsDefault;
  return Math.max(1, Math.floor((threads - 1) / gates.size));
}

/**
 * Lets calls to the disk run, as many at once as there are threads for; others wait for their turn, in
 * order, up to a bound.
 */
export class Gate {
  readonly #atOnceMax: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #isClosed = false;

  /** `atOnceMax`: for stores whose calls must not run beside each other. */
  constructor({ atOnceMax = Infinity, waitingMax = operationsMax } = {}) {
    this.#atOnceMax = atOnceMax;
    this.#waitingMax = waitingMax;
    gates.add(this);
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1;
    else if (this.#waiting.length < this.#waitingMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `it hangs: ${this.#waitingMax} operations wait for it already`,
      );
    try {
      return await call();
    } finally {
      this.#end();
    }
  }

  /** Leaves its threads to others. What is under way or waits still ends. */
  close(): void {
    this.#isClosed = true;
    if (this.#running === 0) gates.delete(this);
  }

  get #atOnce(): number {
    return Math.min(this.#atOnceMax, threadsEach());
  }

  /** Where another store has come, there are fewer threads for this one than it has calls under way. */
  #end(): void {
    const next = this.#running > this.#atOnce ? undefined : this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
    if (this.#isClosed && this.#running === 0) gates.delete(this);
  }
}
