import type { Guarantees } from "../lease/types.js";
import type { FleaseSettings } from "./protocol/settings.js";

/** Guarantees of leases among peers (sections 1 and 3.11), with the numbers of this cluster. */
export function fleaseGuarantees(settings: FleaseSettings): Guarantees {
  const { maxClockSkewMs, clockRateError, mutualRateError, ttlMaxMs, ttlMinMs, rpcTimeoutMs } = settings;
  return {
    ground: "flease",
    exclusion:
      "At no instant do two participants both find a lease on one resource held, if either of the first two assumptions holds.",
    token:
      "Each tenure's token is greater than every earlier one's, if the first assumption holds, or if no member restarts meanwhile.",
    progress:
      "A free resource is acquired, and a crashed holder replaced, as long as a majority of the members is ready and connected.",
    assumptions: [
      `The wall clocks of any two participants differ by at most ${maxClockSkewMs} ms, and no process starts with a clock further behind its machine's earlier readings.`,
      `Every steady clock runs within ${clockRateError * 100} % of real time while its process can act.`,
      "Messages may be lost, delayed, duplicated and reordered, but not forged.",
      "While a holder's process is stopped, the wall clocks do not all step back together by as much as its steady clock loses.",
      "A machine whose clocks all stand still, as in a paused virtual machine, is covered by the token alone.",
    ],
    ttlMinMs,
    ttlMaxMs,
    maxClockSkewMs,
    // Past its end on the wall clock and, if an acceptor's steady clock is correct, past its stretched length
    // on that.
    takeoverMsMax: Math.max(ttlMaxMs + 2 * maxClockSkewMs, ttlMaxMs * (1 + mutualRateError)) + rpcTimeoutMs,
    data: false,
    attach: false,
    fair: "bounded",
    handOver: true,
  };
}
