import { clockRateErrorDefault, relied } from "leasehold/common";

/**
 * How long a client may rely on something that ends in `leftMs`, counted by the client's own steady clock
 * from a moment before it sent the request that this is the answer to.
 *
 * The request was sent before it arrived here, and has spent `spentMs` here since. So the client's time began
 * no later than ours, and the end of `spentMs + leftMs` from there is no later than the true one, however
 * long the answer is on its way. Both steady clocks may be off by ρ, in opposite directions: the sum is made
 * shorter by that.
 */
export function validForMs(spentMs: number, leftMs: number): number {
  if (!(leftMs > 0)) return 0;
  return Math.floor(relied(spentMs + leftMs, clockRateErrorDefault));
}
