/**
 * Aborts with the first of two signals, until disposed. `AbortSignal.any` would leak memory for each call as
 * long as the session lives.
 */
export class EitherSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #ends: (() => void)[] = [];

  constructor(...signals: readonly (AbortSignal | undefined)[]) {
    for (const signal of signals) {
      if (signal === undefined) continue;
      if (signal.aborted) this.#controller.abort(signal.reason);
      const abort = (): void => this.#controller.abort(signal.reason);
      signal.addEventListener("abort", abort);
      this.#ends.push(() => signal.removeEventListener("abort", abort));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const end of this.#ends) end();
  }
}
