import type { KeepAlive } from "../../common/keep-alive.js";

interface Reader<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The callers that wait for the next value of an iterator, in order. A waiting caller keeps its process
 * alive.
 */
export class PendingReads<T> {
  readonly #take: () => T | undefined;
  readonly #keepAlive: KeepAlive | undefined;
  readonly #waiting: Reader<T>[] = [];
  #hasEnded = false;
  #error: unknown;

  /** @param take removes and returns the next value; `undefined` while there is none */
  constructor(take: () => T | undefined, keepAlive: KeepAlive | undefined) {
    this.#take = take;
    this.#keepAlive = keepAlive;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#keepAlive?.ref();
      this.serve();
    });
  }

  /** Serves waiting readers: there may be a value. */
  serve(): void {
    while (this.#waiting.length > 0) {
      const value = this.#take();
      if (value === undefined && !this.#hasEnded) return;
      const reader = this.#waiting.shift()!;
      this.#keepAlive?.unref();
      const error = this.#error;
      if (value !== undefined) reader.resolve({ done: false, value });
      else if (error === undefined) reader.resolve({ done: true, value: undefined });
      else {
        this.#error = undefined;
        reader.reject(error);
      }
    }
  }

  /** Ends the iterator. If there is an error, one reader gets it; all others get `done`. */
  end(error?: unknown): void {
    this.#hasEnded = true;
    this.#error = error;
    this.serve();
  }
}
