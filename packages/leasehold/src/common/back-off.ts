import type { Random } from "./ports.js";

/** Limits the doublings, so that the product stays finite; any more would exceed every bound anyway. */
const doublingsMax = 30;

/**
 * The upper bound, in ms, of the pause after this many consecutive failures: it doubles with each failure, up
 * to `maxMs`.
 */
export function backOffBoundMs(failures: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(failures, doublingsMax));
}

/** The pause before the next attempt, ms: exponential back-off with full jitter, between 0 and the bound. */
export function backOffMs(random: Random, failures: number, baseMs: number, maxMs: number): number {
  return random.next() * backOffBoundMs(failures, baseMs, maxMs);
}
