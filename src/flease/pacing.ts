import { Xorshift } from "../lease/xorshift.js";
import type { Reading } from "./clock.js";
import { notListed } from "./message.js";
import type { FleaseSettings } from "./settings.js";
import type { Slot } from "./slot.js";
import type { StateHash } from "./state-hash.js";

/** First guess of a round trip, until one has been measured. */
const roundTripGuessMs = 5;

/** A new round trip weighs this much in the smoothed one. */
const roundTripWeight = 1 / 8;

/** Doublings of the back-off: beyond, half of the lease is the bound anyway. */
const doublingsMax = 16;

/**
 * When a lease runs out, those who wait for it try one after another, so many round trips apart: the first of them
 * nearly always succeeds, and the others find that out with one request each, not all at once.
 */
const roundTripsPerWaiter = 4;

/** Waiters that are on no list spread over this part of the longest lease. */
const unlistedSpread = 1 / 2;

/** When to try again: by chance, and by the round trips seen so far. Jitter, not the comparison of clocks, makes it fair. */
export class Pacing {
  readonly #random: Xorshift;
  #roundTripMs = roundTripGuessMs;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  measure(roundTripMs: number): void {
    this.#roundTripMs += (roundTripMs - this.#roundTripMs) * roundTripWeight;
  }

  /** After contention: a random pause whose bound doubles with each try. */
  backoffMs(slot: Slot): number {
    const boundMs = 2 * this.#roundTripMs * 2 ** Math.min(slot.tries, doublingsMax);
    return this.#random.next() * Math.min(slot.ttl / 2, boundMs);
  }

  /** After a refusal because another holds: when its lease is over and all who wait before us have had their try. */
  retryInMs(slot: Slot, now: Reading, settings: FleaseSettings): number {
    const untilOverMs = Math.max(0, slot.blockedUntil + settings.maxClockSkewMs - now.lo);
    if (slot.ahead === notListed)
      return untilOverMs + this.#random.next() * settings.ttlMaxMs * unlistedSpread;
    return untilOverMs + (slot.ahead + this.#random.next()) * roundTripsPerWaiter * this.#roundTripMs;
  }

  clone(): Pacing {
    const copy = new Pacing(this.#random.state);
    copy.#roundTripMs = this.#roundTripMs;
    return copy;
  }

  hashInto(hash: StateHash): void {
    hash.number(this.#random.state).number(this.#roundTripMs);
  }
}
