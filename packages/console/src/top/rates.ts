/** How many changes there were in each of the last seconds. */
export class Rates {
  readonly #counts: number[];
  #second: number;

  /** @param seconds that are remembered */
  constructor(seconds: number, nowMs: number) {
    this.#counts = Array.from({ length: seconds }, () => 0);
    this.#second = Math.floor(nowMs / 1_000);
  }

  add(count: number, nowMs: number): void {
    this.#turn(nowMs);
    const last = this.#counts.length - 1;
    this.#counts[last] = (this.#counts[last] ?? 0) + count;
  }

  /** Whole seconds, the newest last: the present one has not ended and is left out. */
  perSecond(nowMs: number): readonly number[] {
    this.#turn(nowMs);
    return this.#counts.slice(0, -1);
  }

  #turn(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    // A clock that is set back repeats seconds: they count as the present one.
    const passed = Math.min(this.#counts.length, second - this.#second);
    if (passed <= 0) return;
    this.#counts.splice(0, passed);
    for (let at = 0; at < passed; at += 1) this.#counts.push(0);
    this.#second = second;
  }
}
