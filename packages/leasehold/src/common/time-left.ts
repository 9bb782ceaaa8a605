/**
 * Divides one timeout among several consecutive requests.
 *
 * @param nowMs a steady clock
 * @returns the remaining time, ms; never less than 0
 */
export function timeLeft(nowMs: () => number, timeoutMs: number): () => number {
  const endMs = nowMs() + timeoutMs;
  return () => Math.max(0, endMs - nowMs());
}
