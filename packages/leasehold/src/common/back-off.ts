import type { Random } from "./ports.js";

/** More doublings would exceed every bound; the limit keeps the product finite. */
const doublingsMax = 30;

/** The bound of the pause after this many failures in a row, ms: it doubles with each, up to `maxMs`. */
export function backOffBoundMs(failures: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(failures, doublingsMax));
}

/** The pause before the next attempt, ms: exponential back-off with full jitter, from 0 to its bound. */
export function backOffMs(random: Random, failures: number, baseMs: number, maxMs: number): number {
  return random.next() * backOffBoundMs(failures, baseMs, maxMs);
}
