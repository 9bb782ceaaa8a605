import { listenToSignals } from "./signals.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Aborts on a signal that ends this process. Dispose of it when it is no longer needed. */
export class Interrupt implements Disposable {
  readonly #controller = new AbortController();
  readonly #stop = listenToSignals(SIGNALS, () => this.#controller.abort());

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

/** For `catch`: work that was cancelled by a signal has not failed. */
export function ifAborted<T>(signal: AbortSignal, result: () => T): (error: unknown) => T {
  return (error) => {
    if (!signal.aborted || error !== signal.reason) throw error;
    return result();
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
