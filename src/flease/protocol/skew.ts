import type { Reading } from "./clock.js";

/**
 * Detection of clock faults between peers (3.10). Every batch carries its sender's two bounds on the time,
 * and the receiver's own lower bound from the last batch that the sender had seen. Some combinations are
 * impossible while the wall clocks are within ε: then one of the two clocks is at fault for certain.
 */
export class SkewWatch {
  readonly #skewMs: number;
  /** How many members must contradict us before we believe that we are the faulty one. */
  majority: number;
  /** Members whose last batch contradicted our clock. */
  readonly #contradicting = new Set<number>();
  readonly #skews: (number | undefined)[] = [];

  constructor(skewMs: number, majority: number) {
    this.#skewMs = skewMs;
    this.majority = majority;
  }

  /**
   * Whether a peer's bounds are possible. `echoLo` is our own lower bound when the batch it answers left, 0
   * if none.
   */
  isPossible(peerLo: number, peerHi: number, echoLo: number, now: Reading): boolean {
    if (peerLo > now.hi + 2 * this.#skewMs) return false;
    return echoLo === 0 || peerHi >= echoLo - 2 * this.#skewMs;
  }

  /** Notes what a member's batch said. False when its messages must not count. */
  observe(member: number, peerLo: number, peerHi: number, echoLo: number, now: Reading): boolean {
    const possible = this.isPossible(peerLo, peerHi, echoLo, now);
    if (possible) this.#contradicting.delete(member);
    else this.#contradicting.add(member);
    this.#skews[member] = peerHi - now.hi;
    return possible;
  }

  /** The member is gone; what it said last counts no more. */
  forget(member: number): void {
    this.#contradicting.delete(member);
    this.#skews[member] = undefined;
  }

  /** A majority contradicts our clock: it is we who are wrong. */
  get weAreFaulty(): boolean {
    return this.#contradicting.size >= this.majority;
  }

  contradicts(member: number): boolean {
    return this.#contradicting.has(member);
  }

  /**
   * About how far a member's clock was ahead of ours at its last batch, ms; the transit time makes it look
   * later.
   */
  skewMs(member: number): number | undefined {
    return this.#skews[member];
  }
}
