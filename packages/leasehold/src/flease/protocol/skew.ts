import type { Reading } from "./clock.js";

/** Length of a window, ms. The best measurement of the present window and the previous one counts. */
const windowMs = 16_000;

/** How far a member's wall clock is ahead of ours: between `skewMs - errorMs` and `skewMs + errorMs`. */
export interface Skew {
  readonly skewMs: number;
  readonly errorMs: number;
}

/** The best measurements of one member. */
interface Measured {
  best: Skew;
  before: Skew | undefined;
  untilMono: number;
}

/**
 * Detection of clock faults between peers (3.10). Every batch carries its sender's two time bounds, and
 * echoes the lower bound of the receiver from the last batch that the sender had seen. Some combinations are
 * impossible while the wall clocks are within ε: then one of the two clocks is certainly at fault.
 */
export class SkewWatch {
  readonly #skewMs: number;
  /** How many members must contradict our clock before we conclude that it is at fault. */
  majority: number;
  /** Members whose last batch contradicted our clock. */
  readonly #contradicting = new Set<number>();
  readonly #measured: (Measured | undefined)[] = [];

  constructor(skewMs: number, majority: number) {
    this.#skewMs = skewMs;
    this.majority = majority;
  }

  /**
   * Whether a peer's bounds are possible. `echoLo` is our own lower bound when the batch being answered left,
   * 0 if there was none.
   */
  isPossible(peerLo: number, peerHi: number, echoLo: number, now: Reading): boolean {
    if (peerLo > now.hi + 2 * this.#skewMs) return false;
    return echoLo === 0 || peerHi >= echoLo - 2 * this.#skewMs;
  }

  /** Records the bounds of a member's batch. False when its messages must not count. */
  observe(member: number, peerLo: number, peerHi: number, echoLo: number, now: Reading): boolean {
    const possible = this.isPossible(peerLo, peerHi, echoLo, now);
    if (possible) this.#contradicting.delete(member);
    else this.#contradicting.add(member);
    return possible;
  }

  /** Forgets a disconnected member: its last bounds no longer count. */
  forget(member: number): void {
    this.#contradicting.delete(member);
    this.#measured[member] = undefined;
  }

  /** Whether a majority contradicts our clock, so that ours is wrong. */
  get weAreFaulty(): boolean {
    return this.#contradicting.size >= this.majority;
  }

  contradicts(member: number): boolean {
    return this.#contradicting.has(member);
  }

  /**
   * Measures how far a member's wall clock is ahead of ours, from a batch that answers one of ours. The
   * member read its clock when its batch left: before `now`, and at most `elapsedMs` ago, because the batch
   * it answers had left here by then. Both bounds hold however long messages were delayed.
   */
  measure(member: number, peerLo: number, peerHi: number, elapsedMs: number, now: Reading): void {
    const [leastMs, mostMs] = [peerLo - now.wall, peerHi - now.wall + elapsedMs];
    const skew = { skewMs: (leastMs + mostMs) / 2, errorMs: Math.max(0, mostMs - leastMs) / 2 };
    const measured = this.#measured[member];
    if (measured === undefined || now.mono >= measured.untilMono) {
      const before = measured?.best;
      this.#measured[member] = { best: skew, before, untilMono: now.mono + windowMs };
    } else if (skew.errorMs < measured.best.errorMs) measured.best = skew;
  }

  /** Uses the recent batch with the smallest uncertainty. */
  skew(member: number): Skew | undefined {
    const { best, before } = this.#measured[member] ?? {};
    return before !== undefined && before.errorMs < best!.errorMs ? before : best;
  }
}
