/** The number of changes in each of the last seconds. */
export class Rates {
  readonly #counts: number[];
  #second: number;

  /** @param seconds the number of seconds that are kept */
  constructor(seconds: number, nowMs: number) {
    this.#counts = Array.from({ length: seconds }, () => 0);
    this.#second = Math.floor(nowMs / 1_000);
  }

  add(count: number, nowMs: number): void {
    this.#turn(nowMs);
    const last = this.#counts.length - 1;
    this.#counts[last] = (this.#counts[last] ?? 0) + count;
  }

  /** Whole seconds, oldest first. The current second is incomplete and left out. */
  perSecond(nowMs: number): readonly number[] {
    this.#turn(nowMs);
    return this.#counts.slice(0, -1);
  }

  #turn(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    // If the clock is set back, repeated seconds count as the current one.
    const passed = Math.min(this.#counts.length, second - this.#second);
    if (passed <= 0) return;
    this.#counts.splice(0, passed);
    for (let at = 0; at < passed; at += 1) this.#counts.push(0);
    this.#second = second;
  }
}
