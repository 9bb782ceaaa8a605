import type { Random } from "../../lease/ports.js";

/** The first spread of those who were in each other's way, ms: about a round trip and a write to disk. */
const spreadMsBase = 4;

/** With 1,000 waiters about one a millisecond begins its attempt, and the first to succeed stops the others. */
export const spreadMsMax = 1_000;

/** What a winner hands on of the spread with which it won: it shrinks when the crowd does, and losers double it when it does not. */
const handedOn = 0.75;

/**
 * Over how long the waiters for one resource spread their attempts after a release, so that a thousand of them do not ask all at once.
 * Nobody counts them: whoever began an attempt in vain doubles its own spread, whoever wins writes a part of its own into the key, where all
 * others read it. So newcomers wait no less than those who have waited for long, and each has the same chance at every release.
 */
export class Crowd {
  #spreadMs = 0;

  get spreadMs(): number {
    return this.#spreadMs;
  }

  /** What the holder's record says. */
  seen(spreadMs: number): void {
    this.#spreadMs = Math.max(this.#spreadMs, Math.min(spreadMs, spreadMsMax));
  }

  /** An attempt after a release came too late. */
  lost(): void {
    this.#spreadMs = Math.min(spreadMsMax, Math.max(spreadMsBase, 2 * this.#spreadMs));
  }

  /** What the next holder's record should say. */
  get handedOnMs(): number {
    const spreadMs = Math.floor(handedOn * this.#spreadMs);
    return spreadMs < spreadMsBase / 2 ? 0 : spreadMs;
  }

  /** How long to wait after a release, ms. */
  delayMs(random: Random): number {
    return random.next() * this.#spreadMs;
  }
}
