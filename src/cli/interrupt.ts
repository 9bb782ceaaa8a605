const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Aborts when this process is asked to end. Dispose of it when nobody looks any more. */
export class Interrupt implements Disposable {
  readonly #controller = new AbortController();
  readonly #onSignal = (): void => this.#controller.abort();

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
