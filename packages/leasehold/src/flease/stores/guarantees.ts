import { fleaseGuarantees } from "../guarantees.js";
import type { FleaseSettings } from "../protocol/settings.js";
import type { Guarantees } from "../../lease/types.js";

/** Guarantees of Flease on stores. They are weaker than among peers, because a store has no steady clock. */
export function gridGuarantees(settings: FleaseSettings, pollMs: number): Guarantees {
  const among = fleaseGuarantees(settings);
  const { maxClockSkewMs, clockRateError } = settings;
  return {
    ...among,
    ground: "grid",
    exclusion:
      "At no instant do two participants both find a lease on one resource held, if the first, third and fourth assumption hold.",
    token:
      "Each tenure's token is greater than every earlier one's, if the first, third and fourth assumption hold.",
    progress:
      "A free resource is acquired, and a crashed holder replaced, as long as a majority of the stores answers within the time for one operation.",
    assumptions: [
      `The wall clocks of any two participants differ by at most ${maxClockSkewMs} ms, and no process starts with a clock further behind its machine's earlier readings.`,
      `If a store forgets, the wall clocks do not step back together meanwhile, and every steady clock that waits for it runs within ${clockRateError * 100} % of real time.`,
      "Each store compares and sets in one step, whatever the network does.",
      "Stores that forget say so by another marker, and fewer than a majority of them forget at a time.",
      "While a holder's process is stopped, the wall clocks do not all step back together by as much as its steady clock loses.",
      "A machine whose clocks all stand still, as in a paused virtual machine, is covered by the token alone.",
    ],
    // Only the wall clock decides when a lease is over, so clock rates add no delay.
    takeoverMsMax: settings.ttlMaxMs + 2 * maxClockSkewMs + pollMs + 3 * settings.rpcTimeoutMs,
    data: true,
    fair: "none",
    // Stores keep no list of waiters.
    handOver: false,
  };
}
