import { listenToSignals } from "./signals.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Aborts when this process is asked to end. Dispose of it when nobody looks any more. */
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

/** For `catch`: what was given up because of the signal has not failed. */
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
