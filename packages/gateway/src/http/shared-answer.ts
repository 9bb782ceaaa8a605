/** Shares one answer among all calls made while it is in flight, and for some time after. */
export class SharedAnswer<T> {
  readonly #ask: () => Promise<T>;
  readonly #keptMs: number;
  #answer: Promise<T> | undefined;

  constructor(ask: () => Promise<T>, keptMs: number) {
    this.#ask = ask;
    this.#keptMs = keptMs;
  }

  get(): Promise<T> {
    if (this.#answer !== undefined) return this.#answer;
    const answer = this.#ask();
    this.#answer = answer;
    const forget = (): void => {
      setTimeout(() => (this.#answer = undefined), this.#keptMs).unref();
    };
    answer.then(forget, forget);
    return answer;
  }
}
