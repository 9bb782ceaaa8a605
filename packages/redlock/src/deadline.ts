/** The end of a lock's duration, by the steady clock and the system's: whichever comes first. */
export class Deadline {
  readonly #steadyMs: number;
  readonly #systemMs: number;

  /** @param durationMs from now; Infinity: no end. */
  constructor(durationMs: number) {
    this.#steadyMs = performance.now() + durationMs;
    this.#systemMs = Date.now() + durationMs;
  }

  /** Milliseconds until the end, 0 or less when it is over. */
  leftMs(): number {
    return Math.min(this.#steadyMs - performance.now(), this.#systemMs - Date.now());
  }
}
