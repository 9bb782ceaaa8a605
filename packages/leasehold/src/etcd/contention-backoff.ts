import type { Random } from "../common/ports.js";

/** The spread after the first collision, ms: some round trips and disk writes. */
const spreadMsBase = 16;

/** With 1,000 waiters, an attempt begins every four milliseconds, and the first success stops the rest. */
export const spreadMsMax = 4_000;

/**
 * Factor after a failed attempt: many waiters that arrive at once reach their spread within a few releases.
 */
const lostFactor = 4;

/**
 * Factor after another waiter won first. It is close to 1, so that about one waiter in a hundred attempts in
 * vain.
 */
const sparedFactor = 0.98;

/** The part of its spread that a winner passes on. */
const handedOnFactor = 0.75;

/**
 * The delay between a release and one waiter's attempt, so that a thousand waiters do not all ask at once.
 * The number of waiters is unknown. A waiter that attempts in vain multiplies its spread; the winner writes a
 * part of its spread into the key, where the others read it. So newcomers wait no less than those that have
 * waited for long, and every waiter has the same chance at every release.
 */
export class ContentionBackoff {
  #spreadMs = 0;

  /** Takes over the spread of the holder's record. */
  seen(spreadMs: number): void {
    this.#spreadMs = Math.max(this.#spreadMs, Math.min(spreadMs, spreadMsMax));
  }

  /** This waiter attempted after a release, but another won. */
  lost(): void {
    this.#spreadMs = Math.min(spreadMsMax, Math.max(spreadMsBase, lostFactor * this.#spreadMs));
  }

  /** Another waiter won before this one attempted. */
  spared(): void {
    this.#spreadMs *= sparedFactor;
  }

  /** The spread to write into the next record. */
  get handedOnMs(): number {
    const spreadMs = Math.floor(handedOnFactor * this.#spreadMs);
    return spreadMs < spreadMsBase / 2 ? 0 : spreadMs;
  }

  /** The random delay after a release, ms. */
  delayMs(random: Random): number {
    return random.next() * this.#spreadMs;
  }
}
