import type { Random } from "../lease/ports.js";

/** The first spread of those who were in each other's way, ms: some round trips and writes to disk. */
const spreadMsBase = 16;

/** With 1,000 waiters one begins its attempt every four milliseconds, and the first to succeed stops the others. */
export const spreadMsMax = 4_000;

/** Whoever began in vain: a crowd that has just come together finds its spread within a few releases. */
const lostFactor = 4;

/** Whoever saw another win without having begun. Much closer to 1, so that of a large crowd about one in a hundred begins in vain. */
const sparedFactor = 0.98;

/** What a winner hands on of the spread with which it won. */
const handedOnFactor = 0.75;

/**
 * Over how long the waiters for one resource spread their attempts after a release, so that a thousand of them do not ask all at once.
 * Nobody counts them: whoever began an attempt in vain multiplies its own spread, whoever wins writes a part of its own into the key, where all
 * others read it. So newcomers wait no less than those who have waited for long, and each has the same chance at every release.
 */
export class Crowd {
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
