import type { Random } from "./ports.js";

/**
 * A small repeatable random generator (Marsaglia's xorshift32), which spreads retries and makes runs in
 * virtual time repeatable.
 */
export class Xorshift implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 0x9e3779b9;
  }

  next(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state >>> 0;
    return this.#state / 0x1_0000_0000;
  }

  /** The complete state, from which an identical generator can be created. */
  get state(): number {
    return this.#state;
  }
}
