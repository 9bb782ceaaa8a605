import type { BothClocks } from "./both-clocks.js";

/**
 * The default of ρ: by how much a steady clock may run faster or slower than real time. Quartz is off by 0.02
 * % at worst, but time services correct a clock by letting it run faster or slower, which affects the steady
 * clock, too: chrony by default up to 83,333 ppm, and Linux allows at most 100,000 ppm. Node has no clock
 * without such corrections.
 */
export const clockRateErrorDefault = 0.1;

/** ρ must be less than this, at which waits would be three times as long as leases. */
export const clockRateErrorLimit = 0.5;

/** @returns why ρ is invalid, or `undefined` */
export function whyNoClockRateError(clockRateError: number): string | undefined {
  // This form also refuses NaN.
  if (clockRateError >= 0 && clockRateError < clockRateErrorLimit) return undefined;
  return `clockRateError must be at least 0 and below ${clockRateErrorLimit}, and is ${clockRateError}`;
}

/**
 * The fraction of a lease's length by which the two clocks may drift apart during the lease. If they drift
 * further, one of them stopped or was set and the true time is unknown, so the lease ends. A steady clock may
 * lose this much unnoticed, which is within the default of ρ.
 */
const apartMax = 0.1;

/**
 * Whether the steady clock and the system clock disagree about the time between two readings by more than a
 * lease allows.
 */
export function clocksDisagree(from: BothClocks, to: BothClocks, leaseMs: number): boolean {
  const steadyMs = to.monotonicMs - from.monotonicMs;
  const wallMs = to.wallMs - from.wallMs;
  return Math.abs(steadyMs - wallMs) > leaseMs * apartMax;
}

/** How long, by the local clock, to rely on something that lasts for `ms` by a remote clock. */
export function relied(ms: number, clockRateError: number): number {
  return ms / stretched(1, clockRateError);
}

/**
 * How long to wait, by the local clock, until `ms` have passed by a remote clock: both may be off by ρ, in
 * opposite directions.
 */
export function stretched(ms: number, clockRateError: number): number {
  return (ms * (1 + clockRateError)) / (1 - clockRateError);
}
