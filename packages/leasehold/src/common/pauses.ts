import type { Timer, Timers } from "./ports.js";

/** Pauses that their owner can end all at once when it closes. */
export class Pauses {
  readonly #timers: Timers;
  readonly #open = new Map<Timer, () => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Resolves after `ms`, or earlier when all pauses are ended. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#timers.after(ms, () => {
        this.#open.delete(timer);
        resolve();
      });
      this.#open.set(timer, resolve);
    });
  }

  /** The promise's value, or `undefined` if `ms` pass or all pauses are ended first. */
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

  /** Ends the open pauses. Later ones are not affected. */
  end(): void {
    for (const [timer, resume] of this.#open) {
      timer.cancel();
      resume();
    }
    this.#open.clear();
  }
}
