import type { Clock } from "../../../common/ports.js";

/**
 * A steady clock with one origin for all threads of a process; `performance.now()` starts anew in each
 * thread.
 */
export function sharedMonotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

export const sharedClock: Clock = { monotonicMs: sharedMonotonicMs, wallMs: () => Date.now() };
