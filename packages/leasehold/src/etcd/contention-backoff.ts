import type { Random } from "../common/ports.js";

/** The first spread of those who were in each other's way, ms: some round trips and writes to disk. */
const spreadMsBase = 16;

/**
 * With 1,000 waiters one begins its attempt every four milliseconds, and the first to succeed stops the
 * others.
 */
export const spreadMsMax = 4_000;

/**
 * For a waiter that began in vain: many waiters that come at once find their spread within a few releases.
 */
const lostFactor = 4;

/**
 * For a waiter that saw another win before it began. It is close to 1, so that of many waiters about one in a
 * hundred begins in vain.
 */
const sparedFactor = 0.98;

/** What a winner hands on of the spread with which it won. */
const handedOnFactor = 0.75;

/**
 * How long one waiter for a resource waits after a release before it tries, so that a thousand waiters do not
 * all ask at once. Nobody counts the waiters. One that tried in vain multiplies its spread; the one that wins
 * writes a part of its spread into the key, where the others read it. A newcomer therefore waits no less than
 * those who have waited for long, and every waiter has the same chance at every release.
 */
export class ContentionBackoff {
  #spreadMs = 0;

  /** What the holder's record says. */
  seen(spreadMs: number): void {
    this.#spreadMs = Math.max(this.#spreadMs, Math.min(spreadMs, spreadMsMax));
  }

  /** An attempt after a release came too late. */
  lost(): void {
    this.#spreadMs = Math.min(spreadMsMax, Math.max(spreadMsBase, lostFactor * this.#spreadMs));
  }

  /** Another won before this one had begun. */
  spared(): void {
    this.#spreadMs *= sparedFactor;
  }

  /** What the next holder's record should say. */
  get handedOnMs(): number {
    const spreadMs = Math.floor(handedOnFactor * this.#spreadMs);
    return spreadMs < spreadMsBase / 2 ? 0 : spreadMs;
  }

  /** How long to wait after a release, ms. */
  delayMs(random: Random): number {
    return random.next() * this.#spreadMs;
  }
}
