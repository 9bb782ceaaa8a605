/** The end of a lock's duration, by the steady clock or the system clock, whichever comes first. */
export class Deadline {
  readonly #steadyMs: number;
  readonly #systemMs: number;

  /** @param durationMs from now; Infinity for no end. */
  constructor(durationMs: number) {
    this.#steadyMs = performance.now() + durationMs;
    this.#systemMs = Date.now() + durationMs;
  }

  /** Milliseconds until the end; 0 or less once it has passed. */
  leftMs(): number {
    return Math.min(this.#steadyMs - performance.now(), this.#systemMs - Date.now());
  }
}
