import type { Message } from "./protocol/message.js";

/**
 * New requests that are let in between two looks whatever happens: who wants little is served also where all
 * is slow.
 */
const admittedAlways = 16;

/**
 * At each look at which it is late it lets in half as much as before, down to this part; else so much more.
 */
const shareMin = 1 / 256;
const fallsBy = 1 / 2;
const risesBy = 1.1;

/**
 * A sender that asks for no more than this part of the average, between two looks, did not cause the
 * overload, and is let in. All of these together are at most as large a part of what comes in.
 */
const LIGHT = 1 / 8;

/** When those who were turned away should come back: by then there has been time for several looks. */
export const busyRetryMs = 1_000;

/** Requests are told apart in so many classes. */
const CLASSES = 4_096;

/**
 * Whether an acceptor takes in new requests. What is held is renewed before anything new is begun: a member
 * that cannot do its work in time turns away requests for what the sender does not hold, which costs it
 * little, and does all the rest.
 *
 * Members decide alike which of them they let in, by the ballot's number, as a request that only some let in
 * is of no use.
 */
export class Admission {
  readonly #lateMsMax: number;
  #share = 1;
  #admitted = 0;
  /** New requests since the last look, and before it, by sender. Kept only while not all are let in. */
  #asked = new Map<number, number>();
  #askedBefore = new Map<number, number>();
  /** The most that a light sender has asked for, and what is left for all of them until the next look. */
  #lightMax = 0;
  #lightLeft = 0;

  /**
   * @param lateMsMax more than this between when a member wants to do something and when it does it is too
   * much to do.
   */
  constructor(lateMsMax: number) {
    this.#lateMsMax = lateMsMax;
  }

  /** To be called several times a second, with how much later than it was wanted to be. */
  look(lateMs: number): void {
    this.#admitted = 0;
    this.#count();
    if (lateMs > this.#lateMsMax) this.#share = Math.max(shareMin, this.#share * fallsBy);
    else this.#share = Math.min(1, this.#share * risesBy);
  }

  /** Everything is let in. */
  get isOpen(): boolean {
    return this.#share === 1;
  }

  /** Whether a request that begins something new at this acceptor is let in (`Acceptor.continues`). */
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
