import type { Message } from "./protocol/message.js";

/** New requests always admitted between two checks, so that light senders are served even in an overload. */
const admittedAlways = 16;

/**
 * Each check that finds the member late multiplies the admitted share by `fallsBy`, down to `shareMin`; other
 * checks multiply it by `risesBy`.
 */
const shareMin = 1 / 256;
const fallsBy = 1 / 2;
const risesBy = 1.1;

/**
 * A sender with at most this fraction of the average number of requests between two checks did not cause the
 * overload, and is admitted. All such senders together are at most this fraction of the load.
 */
const LIGHT = 1 / 8;

/** Retry delay of refused requests: by then several checks have been made. */
export const busyRetryMs = 1_000;

/** Number of classes of requests. */
const CLASSES = 4_096;

/**
 * Load shedding of an acceptor. Held leases are renewed before anything new begins: an overloaded member
 * refuses requests for resources that the sender does not hold, which is cheap, and serves all others.
 *
 * Members decide alike, by the ballot's number, because a request that only some of them admit is useless.
 */
export class Admission {
  readonly #lateMsMax: number;
  #share = 1;
  #admitted = 0;
  /** New requests by sender, since the last check and before it. Counted only during shedding. */
  #asked = new Map<number, number>();
  #askedBefore = new Map<number, number>();
  /**
   * The most requests of a light sender, and the rest of the budget of all light senders until the next
   * check.
   */
  #lightMax = 0;
  #lightLeft = 0;

  /** @param lateMsMax a greater delay of the member's timers, ms, counts as overload. */
  constructor(lateMsMax: number) {
    this.#lateMsMax = lateMsMax;
  }

  /** Reports the present delay of timers, ms. Called several times a second. */
  look(lateMs: number): void {
    this.#admitted = 0;
    this.#count();
    if (lateMs > this.#lateMsMax) this.#share = Math.max(shareMin, this.#share * fallsBy);
    else this.#share = Math.min(1, this.#share * risesBy);
  }

  /** Everything is admitted. */
  get isOpen(): boolean {
    return this.#share === 1;
  }

  /** Whether to admit a request that begins something new at this acceptor (`Acceptor.continues`). */
  admits(from: number, request: Message): boolean {
    if (this.isOpen) return true;
    if (this.#isLight(from)) return true;
    if (this.#admitted < admittedAlways || classOf(request.number) < this.#share * CLASSES) {
      this.#admitted += 1;
      return true;
    }
    return false;
  }

  #count(): void {
    [this.#asked, this.#askedBefore] = [this.#askedBefore, this.#asked];
    this.#asked.clear();
    let total = 0;
    for (const asked of this.#askedBefore.values()) total += asked;
    this.#lightLeft = total * LIGHT;
    this.#lightMax = this.#lightLeft / Math.max(1, this.#askedBefore.size);
  }

  #isLight(from: number): boolean {
    const asked = (this.#asked.get(from) ?? 0) + 1;
    this.#asked.set(from, asked);
    const most = Math.max(asked, this.#askedBefore.get(from) ?? 0);
    if (most > this.#lightMax || this.#lightLeft < 1) return false;
    this.#lightLeft -= 1;
    return true;
  }
}

function classOf(number: number): number {
  const low = Math.imul(number % 0x1_0000_0000, 0x9e37_79b1) >>> 0;
  return (low >>> 16) % CLASSES;
}
