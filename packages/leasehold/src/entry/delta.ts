/**
 * Leases on shared storage: `leasehold/delta`. The entry `leasehold` loads this code on demand; this entry
 * loads it at once, and a bundle that imports only this entry has no other ground. It also exports the parts
 * of *Light-Weight Leases for Storage-Centric Coordination* (Chockler and Malkhi), each usable alone and
 * named as in the paper.
 */
import type { GuardedCells } from "../delta/guarded/guarded.js";
import type { FarmParts } from "../delta/paper/parts.js";
import { keptAlive } from "../common/keep-alive.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { splitArguments, type UrlsAndOptions } from "../runtime/options.js";
import { realWorld } from "../runtime/world.js";
import { type FarmOptions, openFarmLeases, openFarmParts, openStoredCells } from "../stores/farm-leases.js";

export type { FarmOptions } from "../stores/farm-leases.js";
export type { GuardedCells, GuardedDatum, GuardedLease } from "../delta/guarded/guarded.js";
export type { BothClocks } from "../common/both-clocks.js";
export type { Effect, Protocol } from "../delta/effects.js";
export type { FarmParts } from "../delta/paper/parts.js";
export { Consensus } from "../delta/paper/consensus.js";
export { contend } from "../delta/paper/contend.js";
export { LeaderOracle } from "../delta/paper/leader-oracle.js";
export { compareRanks, RankedRegister, type Rank, type RankedRead } from "../delta/paper/ranked-register.js";
export {
  type Codec,
  numberAfter,
  type ReadResult,
  RegularRegister,
  type Unanswered,
} from "../delta/paper/register.js";
export { release, renewEventuallyND, renewND } from "../delta/paper/renew.js";
export { ReaderSite } from "../delta/paper/shared.js";
export { Site } from "../delta/paper/site.js";
export { Held, Idle } from "../delta/paper/states.js";
export type { Updated } from "../delta/paper/update.js";
export type { DeltaRecord } from "../delta/record/record.js";
export type { Stamp } from "../delta/record/stamp.js";

/**
 * Opens the leases of these stores, `delta+KIND:…` or `flease+KIND:…`, as `open` of `leasehold` does
 * (`docs/storage.md`).
 *
 * @throws LeaseholdError as `open`.
 * @example
 * ```ts
 * import { openFarm } from "leasehold/delta";
 *
 * await using leases = await openFarm(["delta+memory:reports"], { name: "importer" });
 * await using lease = await leases.acquire("reports/nightly");
 * ```
 */
export async function openFarm(urls: readonly string[], options: FarmOptions = {}): Promise<Leases> {
  const world = realWorld();
  const opening = () => openFarmLeases(urls, options, world);
  return new LeaseManager(await keptAlive(world.keepAlive, opening), world);
}

/** The same as `openGuardedCells` of `leasehold`. */
export async function openCells(url: string, options: FarmOptions = {}): Promise<GuardedCells> {
  const world = realWorld();
  return keptAlive(world.keepAlive, () => openStoredCells(url, options, world));
}

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
export async function openParts(...args: UrlsAndOptions<FarmOptions>): Promise<FarmParts> {
  const { urls, options } = splitArguments<FarmOptions>(args);
  const world = realWorld();
  return keptAlive(world.keepAlive, () => openFarmParts(urls, options, world));
}
