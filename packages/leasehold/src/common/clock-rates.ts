import type { BothClocks } from "./both-clocks.js";

/**
 * The default of ρ: by how much a steady clock may run faster or slower than real time. Quartz is off by 0.02
 * % at worst, but time services correct a clock by letting it run faster or slower, which affects the steady
 * clock, too: chrony by default up to 83,333 ppm, and Linux allows at most 100,000 ppm. Node has no clock
 * without such corrections.
 */
export const clockRateErrorDefault = 0.1;

/** ρ must be less: at this value waits would be three times as long as leases. */
export const clockRateErrorLimit = 0.5;

/** @returns why ρ is invalid, or `undefined` */
export function whyNoClockRateError(clockRateError: number): string | undefined {
  // Written so that NaN is refused.
  if (clockRateError >= 0 && clockRateError < clockRateErrorLimit) return undefined;
  return `clockRateError must be at least 0 and below ${clockRateErrorLimit}, and is ${clockRateError}`;
}

/**
 * The fraction of a lease by which the two clocks may drift apart while it lasts. Beyond it the lease ends:
 * one of them stood still or was set, and how late it is cannot be known. A steady clock may lose this much
 * unnoticed, which is within the default of ρ.
 */
const apartMax = 0.1;

/** Whether the steady clock and the system clock disagree, for a lease, on the time between two readings. */
export function clocksDisagree(from: BothClocks, to: BothClocks, leaseMs: number): boolean {
  const steadyMs = to.monotonicMs - from.monotonicMs;
  const wallMs = to.wallMs - from.wallMs;
  return Math.abs(steadyMs - wallMs) > leaseMs * apartMax;
}

/** How long, by one's own clock, to rely on something that lasts for `ms` by another's. */
export function relied(ms: number, clockRateError: number): number {
  return ms / stretched(1, clockRateError);
}

/**
 * How long to wait by one's own clock until `ms` have passed by another's: both may be off by ρ, in opposite
 * directions.
 */
export function stretched(ms: number, clockRateError: number): number {
  return (ms * (1 + clockRateError)) / (1 - clockRateError);
}
