/**
 * One time-out for several requests, one after the other.
 *
 * @param nowMs a steady clock
 * @returns what is left of the time, ms; never less than 0
 */
export function timeLeft(nowMs: () => number, timeoutMs: number): () => number {
  const endMs = nowMs() + timeoutMs;
  return () => Math.max(0, endMs - nowMs());
}
