import type { Timer, Timers } from "./ports.js";

/** Pauses that can all be ended at once, by the close of what makes them. */
export class Pauses {
  readonly #timers: Timers;
  readonly #open = new Map<Timer, () => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Resolves after so long, or when all pauses are ended. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#timers.after(ms, () => {
        this.#open.delete(timer);
        resolve();
      });
      this.#open.set(timer, resolve);
    });
  }

  /** What the promise resolves with, or undefined when so long has passed or all pauses are ended. */
  async within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
    let giveUp = (): void => undefined;
    const late = new Promise<undefined>((resolve) => (giveUp = () => resolve(undefined)));
    const timer = this.#timers.after(ms, giveUp);
    this.#open.set(timer, giveUp);
    try {
      return await Promise.race([promise, late]);
    } finally {
      timer.cancel();
      this.#open.delete(timer);
    }
  }

  /** Ends those that are open. A later one is a pause as before. */
  end(): void {
    for (const [timer, resume] of this.#open) {
      timer.cancel();
      resume();
    }
    this.#open.clear();
  }
}
