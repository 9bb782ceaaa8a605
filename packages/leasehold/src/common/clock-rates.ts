import type { BothClocks } from "./both-clocks.js";

/**
 * ρ as it comes: by how much a steady clock may run faster or slower than real time. Quartz is off by 0.02 %
 * at the worst, but time services correct a clock by letting it run faster or slower, and the steady clock
 * runs along: chrony as shipped by up to 83,333 ppm, and Linux lets nobody go beyond 100,000 ppm. Node has no
 * clock that is not corrected so.
 */
export const clockRateErrorDefault = 0.1;

/** ρ stays below this: from here on waits would be three times as long as leases. */
export const clockRateErrorLimit = 0.5;

/** @returns what is wrong with a ρ, or undefined */
export function whyNoClockRateError(clockRateError: number): string | undefined {
  // Written so that NaN is refused.
  if (clockRateError >= 0 && clockRateError < clockRateErrorLimit) return undefined;
  return `clockRateError must be at least 0 and below ${clockRateErrorLimit}, and is ${clockRateError}`;
}

/**
 * Two clocks that move apart by more than this share of a lease while it lasts end it: one of them stood
 * still or was set, and nobody can tell how late it is. As much is what a steady clock may lose unseen, and
 * within ρ as it comes.
 */
const apartMax = 0.1;

/**
 * Whether the steady clock and the system's disagree, for a lease, on how much time has passed between two
 * readings.
 */
export function clocksDisagree(from: BothClocks, to: BothClocks, leaseMs: number): boolean {
  const steadyMs = to.monotonicMs - from.monotonicMs;
  const wallMs = to.wallMs - from.wallMs;
  return Math.abs(steadyMs - wallMs) > leaseMs * apartMax;
}

/** How long to rely, on one's own clock, on what lasts for `ms` on another's. */
export function relied(ms: number, clockRateError: number): number {
  return ms / stretched(1, clockRateError);
}

/**
 * How long to wait on one's own clock for `ms` to have passed on another's: both may be off by ρ, in opposite
 * directions.
 */
export function stretched(ms: number, clockRateError: number): number {
  return (ms * (1 + clockRateError)) / (1 - clockRateError);
}
