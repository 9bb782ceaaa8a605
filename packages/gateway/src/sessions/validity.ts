import { clockRateErrorDefault, relied } from "leasehold/common";

/**
 * How long a client may rely on something that ends in `leftMs`. The client counts by its own steady clock,
 * from just before it sent the request that this answers.
 *
 * The client sent the request before it arrived here, and the gateway has spent `spentMs` on it since. So the
 * client's time began no later than the gateway's, and `spentMs + leftMs` counted from there ends no later
 * than the true end, however long the answer takes. Both steady clocks may be off by ρ, in opposite
 * directions; the sum is shortened accordingly.
 */
export function validForMs(spentMs: number, leftMs: number): number {
  if (!(leftMs > 0)) return 0;
  return Math.floor(relied(spentMs + leftMs, clockRateErrorDefault));
}
