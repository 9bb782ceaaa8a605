import { stretched } from "../common/clock-rates.js";

/** A core counts leases in whole seconds. */
export const ttlMinMs = 1_000;

/** What an address of a core says. */
export interface CoreAddress {
  /** Each `host:port`. */
  readonly endpoints: readonly string[];
  /** What the keys begin with. */
  readonly keyPrefix: string;
  /** The longest lease, and the default, ms. */
  readonly ttlMaxMs: number;
  /** ρ, of the clocks here and of the core's leader. */
  readonly clockRateError: number;
}

/**
 * What the core is asked for, so that a holder of `ttlMs` ends before it, however far both clocks are off.
 */
export function wholeSeconds(ttlMs: number, { clockRateError }: Pick<CoreAddress, "clockRateError">): number {
  return Math.ceil(stretched(ttlMs, clockRateError) / 1_000);
}
