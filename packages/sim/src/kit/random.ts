import type { Random } from "leasehold/inner/common/ports.js";
import { log, pow } from "./portable-math.js";

/**
 * The one source of every choice in a simulated run: the small fast counting generator (sfc32, Doty-Humphrey), which
 * passes statistical tests that a 32-bit xorshift fails, and whose seeds 1, 2, 3, … give unrelated runs.
 */
export class SimRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = 0x9e3779b9;
    for (let round = 0; round < 15; round += 1) this.#word();
  }

  /** Uniform in `[0, 1)`. */
  next(): number {
    return this.#word() / 0x1_0000_0000;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** Uniform in the exponent, for quantities that may have any order of magnitude. */
  magnitude(low: number, high: number): number {
    return low * pow(high / low, this.next());
  }

  /** An integer in `[0, limit)`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  exponential(mean: number): number {
    return -log(1 - this.next()) * mean;
  }

  #word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}
