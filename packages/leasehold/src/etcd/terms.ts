import { stretched } from "../common/clock-rates.js";

/** A core counts leases in whole seconds. */
export const ttlMinMs = 1_000;

/** A parsed address of a core. */
export interface CoreAddress {
  /** `host:port` of each server. */
  readonly endpoints: readonly string[];
  /** The prefix of the keys. */
  readonly keyPrefix: string;
  /** The longest lease, and the default, ms. */
  readonly ttlMaxMs: number;
  /** ρ, the maximum rate error of the clocks here and of the core's leader. */
  readonly clockRateError: number;
}

/**
 * The TTL to request, in seconds, so that a holder's lease of `ttlMs` ends before the core's, whatever the
 * errors of both clocks.
 */
export function wholeSeconds(ttlMs: number, { clockRateError }: Pick<CoreAddress, "clockRateError">): number {
  return Math.ceil(stretched(ttlMs, clockRateError) / 1_000);
}
