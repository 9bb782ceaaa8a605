import { LeaseholdError } from "../../lease/errors.js";

/**
 * Operations that may wait for their turn at one disk: what a driver has under way at one store, and its
 * abandoned ones.
 */
const waitingMax = 256;

/** Threads that Node has for files, unless it is told otherwise. */
const threadsDefault = 4;

/**
 * How many operations of one store may use Node's threads at once. File operations on a dead server hang for
 * ever and keep their thread: a store must never take so many that those of its farm that answer, and the
 * rest of the program, get none.
 */
export function operationsAtOnce(): number {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? threadsDefault);
  return Math.max(1, Math.floor(threads / threadsDefault) || 1);
}

/** Lets so many operations run at once; others wait for their turn, in order, up to a bound. */
export class Gate {
  readonly #atOnce: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  async run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1;
    else if (this.#waiting.length < waitingMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else
      throw new LeaseholdError("STORE_UNAVAILABLE", `it hangs: ${waitingMax} operations wait for it already`);
    try {
      return await operation();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
