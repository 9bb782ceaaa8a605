/**
 * The parts of *Light-Weight Leases for Storage-Centric Coordination* (Chockler and Malkhi), each usable
 * alone and named as there: `leasehold/delta`. Whoever wants leases takes `open("delta+…")` instead, which is
 * made of them where stores can only write.
 */
import type { FarmParts } from "./delta/parts.js";
import type { OpenOptions } from "./runtime/types.js";
import { realWorld } from "./runtime/world.js";
import { openFarmParts } from "./stores/farm-leases.js";

export type { Effect, Protocol, Reading } from "./delta/effects.js";
export type { FarmParts } from "./delta/parts.js";
export { Consensus } from "./delta/paper/consensus.js";
export { contend } from "./delta/paper/contend.js";
export { LeaderOracle } from "./delta/paper/leader-oracle.js";
export { compareRanks, RankedRegister, type Rank, type RankedRead } from "./delta/paper/ranked-register.js";
export {
  type Codec,
  numberAfter,
  type ReadResult,
  RegularRegister,
  type Unanswered,
} from "./delta/paper/register.js";
export { release, renewEventuallyND, renewND } from "./delta/paper/renew.js";
export { contendShared, ReaderSite, releaseShared } from "./delta/paper/shared.js";
export { Site } from "./delta/paper/site.js";
export { Held, Idle } from "./delta/paper/states.js";
export type { Updated } from "./delta/paper/update.js";
export type { DeltaRecord } from "./delta/record/record.js";
export type { Stamp } from "./delta/record/stamp.js";

/**
 * Opens a farm of stores for the parts of the paper. The addresses are those of `open` (`delta+…`);
 * `timeout`, `name` and `label` have the same meaning as there.
 *
 * Rejects as `open` does.
 *
 * @example
 * ```ts
 * import { contend, Idle, openParts, release, renewEventuallyND } from "leasehold/delta";
 *
 * const farm = await openParts("delta+memory:parts");
 * const site = farm.site("jobs");
 * let state = await farm.run(contend(site, new Idle())); // Fig. 2
 * if (state.state === "hold") state = await farm.run(renewEventuallyND(site, state)); // Fig. 5
 * if (state.state === "hold") {
 *   console.log(`token ${state.record.epoch}, ${state.remainingMs(farm.now())} ms left`);
 *   await farm.run(release(site, state));
 * }
 * await farm.close();
 * ```
 */
export function openParts(...args: [...urls: string[], options: OpenOptions] | string[]): Promise<FarmParts> {
  const last = args.at(-1);
  const options = typeof last === "object" ? last : {};
  return openFarmParts(
    args.flatMap((arg) => (typeof arg === "string" ? [arg] : [])),
    options,
    realWorld(),
  );
}
