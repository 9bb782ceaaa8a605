import { backOffMs } from "../../common/back-off.js";
import { Xorshift } from "../../common/xorshift.js";
import type { Reading } from "./clock.js";
import { notListed } from "./message.js";
import type { FleaseSettings } from "./settings.js";
import { OperationKind } from "./instance.js";
import type { Operation } from "./instance.js";
import type { StateHash } from "./state-hash.js";

/** The initial estimate of a round trip, until one has been measured. */
const roundTripGuessMs = 5;

/** The weight of a new round trip in the smoothed one. */
const roundTripWeight = 1 / 8;

/** The first waiter tries within this many round trips of the lease's end. */
const firstTryRoundTrips = 4;

/**
 * Acceptors notify the other waiters, even of a lease that ran out. A waiter polls only in case every
 * notification was lost. Each waiter ahead delays its poll by this share of the longest lease, at most this
 * many times. So a thousand waiters cost hardly more than ten.
 */
const spacing = 1 / 4;
const spacingsMax = 64;

/** Waiters on no list spread their tries over this part of the longest lease. */
const unlistedSpread = 1 / 2;

/** How long the phase that begins now may wait for its answers, ms. */
export function phaseTimeoutMs(operation: Operation, now: Reading, settings: FleaseSettings): number {
  const leftMs = Math.max(0, operation.giveUpAt - now.mono);
  const isPatient = operation.kind === OperationKind.renew;
  return Math.min(leftMs, Math.max(settings.rpcTimeoutMs, isPatient ? leftMs * settings.renewalPatience : 0));
}

/** The time of the next attempt: random, scaled by the round trips measured so far. */
export class Pacing {
  readonly #random: Xorshift;
  #roundTripMs = roundTripGuessMs;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  /** The present estimate of a request's round trip. */
  get roundTripMs(): number {
    return this.#roundTripMs;
  }

  measure(roundTripMs: number): void {
    this.#roundTripMs += (roundTripMs - this.#roundTripMs) * roundTripWeight;
  }

  /** After contention: a random pause whose bound doubles with each try. */
  backoffMs(operation: Operation): number {
    return backOffMs(this.#random, operation.tries, 2 * this.#roundTripMs, operation.ttl / 2);
  }

  /**
   * After a refusal because of another holder: when its lease is over and all waiters ahead of us have had
   * their chance.
   */
  retryInMs(operation: Operation, now: Reading, settings: FleaseSettings): number {
    // No lease is longer than this, but one may seem longer after clocks have stepped back, and these may
    // step forward again.
    const longestMs = settings.ttlMaxMs + 2 * settings.maxClockSkewMs;
    const leftMs = operation.blockedUntil + settings.maxClockSkewMs - now.lo;
    const untilOverMs = Math.min(longestMs, Math.max(0, leftMs));
    if (operation.ahead === notListed)
      return untilOverMs + this.#random.next() * settings.ttlMaxMs * unlistedSpread;
    const turnMs = Math.min(operation.ahead, spacingsMax) * spacing * settings.ttlMaxMs;
    return untilOverMs + turnMs + this.#random.next() * firstTryRoundTrips * this.#roundTripMs;
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
