import { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";

/** Random choices that a seed repeats. */
export class Choices {
  readonly #random: Xorshift;

  constructor(seed: number) {
    this.#random = new Xorshift(mixed(seed));
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** Picks one of the makers, with a probability proportional to its weight. */
  weighted<T>(makers: readonly (readonly [weight: number, make: () => T])[]): T {
    let left = this.below(makers.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, make] of makers) {
      left -= weight;
      if (left < 0) return make();
    }
    throw new TypeError("there is nothing to choose from");
  }

  below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  chance(share: number): boolean {
    return this.#random.next() < share;
  }

  several<T>(least: number, most: number, make: (at: number) => T): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, (_, at) => make(at));
  }
}

/**
 * The first numbers of xorshift are similar for similar seeds: neighbouring seeds would produce the same
 * short sequences again and again. The last step of MurmurHash3 spreads them.
 */
function mixed(seed: number): number {
  let hash = seed ^ (seed >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
