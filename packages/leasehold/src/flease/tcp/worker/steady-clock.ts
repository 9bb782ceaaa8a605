import type { Clock } from "../../../common/ports.js";

/**
 * The steady clock that all threads of a process read alike; `performance.now()` starts anew in each
 * thread.
 */
export function sharedMonotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

export const sharedClock: Clock = { monotonicMs: sharedMonotonicMs, wallMs: () => Date.now() };
