import { formatDuration } from "../lease/duration.js";
import type { Guarantees } from "../lease/types.js";
import { type CoreAddress, ttlMinMs, wholeSeconds } from "./terms.js";

/**
 * Upper bound of the time until a core's leader notices that a lease has expired and commits its end, ms,
 * with a margin.
 */
export const noticedMsMax = 2_000;

/** The guarantees of leases on a consistent core, and their assumptions. */
export function coreGuarantees(address: CoreAddress): Guarantees {
  const { ttlMaxMs, clockRateError } = address;
  return {
    ground: "core",
    exclusion:
      "At most one participant holds a resource at any moment, if 1, 2, 3 and 4 hold; without 3 the token still tells tenures apart.",
    token:
      "The token is the core's revision at which the tenure's key was created, plus one for each time that it was attached, and greater than those of all earlier tenures, if 1 and 2 hold; it rests on no clock.",
    progress: `A free resource is acquired while a majority of the core's servers runs and can be reached. A crashed holder's resource is free within its ttl, stretched by both clocks' error, in whole seconds, or the core's shortest lease if that is longer, and ${formatDuration(noticedMsMax)}; when the core changes its leader meanwhile, within another ttl and election.`,
    assumptions: [
      "1. A majority of the core's servers keep what they have acknowledged on their disks, and the core is not set back to an earlier snapshot.",
      "2. Nobody but Leasehold writes or deletes the keys below the prefix, or revokes their leases.",
      `3. The steady clocks of the holder and of the core's leader run within ${clockRateError} of real time; the holder counts from before it asked, and the core is asked for so much more that it ends later.`,
      "4. The core ends no lease before the time to live that it has granted, counted from the last refresh of a leader that was one then; a new leader lets every lease run on, in full or for what was left.",
    ],
    ttlMinMs,
    ttlMaxMs,
    // Clock readings of different processes are never compared.
    maxClockSkewMs: 0,
    takeoverMsMax: 1_000 * wholeSeconds(ttlMaxMs, address) + noticedMsMax,
    data: true,
    attach: true,
    fair: "strict",
    handOver: false,
  };
}
