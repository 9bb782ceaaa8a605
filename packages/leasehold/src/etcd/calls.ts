import type { Timers } from "../common/ports.js";

/** The end of one call: its answer, or the error that it rejected with. */
export type Ended<K, T> = { readonly call: K } & ({ readonly answer: T } | { readonly error: unknown });

/** Concurrent calls, whose ends are taken one by one in order. */
export class Calls<K, T> {
  readonly #timers: Timers;
  readonly #ended: Ended<K, T>[] = [];
  #wake: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  begin(call: K, answer: Promise<T>): void {
    const end = (ended: Ended<K, T>): void => {
      this.#ended.push(ended);
      this.wake();
    };
    answer.then(
      (value) => end({ call, answer: value }),
      (error: unknown) => end({ call, error }),
    );
  }

  /** Returns the next call that ends; undefined after the timeout or `wake`. */
  async next(timeoutMs: number): Promise<Ended<K, T> | undefined> {
    if (this.#ended.length === 0)
      await new Promise<void>((resolve) => {
        const timer = this.#timers.after(Math.max(0, timeoutMs), () => this.wake());
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
    return this.#ended.shift();
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
