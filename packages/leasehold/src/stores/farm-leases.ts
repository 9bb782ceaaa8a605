import { clientName, labelOf } from "../runtime/participant.js";
import { DatumStore } from "../delta/guarded/datum-store.js";
import { StoredCells } from "../delta/guarded/guarded.js";
import { openMemoryStores } from "../delta/memory/memory-registry.js";
import { openFarm, openParts } from "../delta/provider/open.js";
import type { FarmParts } from "../delta/paper/parts.js";
import type { Store } from "../delta/store.js";
import { checkOpenOptions, type ParticipantOptions, participantOptionNames } from "../runtime/options.js";
import { eventLog } from "../runtime/log-events.js";
import { silent } from "../runtime/logger.js";
import { incarnation } from "../runtime/world.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { World } from "../common/ports.js";
import type { Provider } from "../lease/provider.js";
import { type FarmAddress, parseFarmUrls } from "./farm-address.js";
import { ObservedStore } from "./observed-store.js";
import { openStores } from "./open.js";

const timeoutDefault = "5s";

/** The options for stores: `delta+…` and `flease+…`. The addresses contain how stores are reached. */
export type FarmOptions = ParticipantOptions;

/**
 * Opens leases on the stores of these addresses: `delta+…` or `flease+…`.
 *
 * Rejects with a `LeaseholdError`: `INVALID_URL`, `INVALID_DURATION`, `INVALID_CONFIG`, `UNSUPPORTED`,
 * `CONFIG_MISMATCH`, `NO_QUORUM`, `STORE_…`.
 */
export async function openFarmLeases(
  urls: readonly string[],
  options: FarmOptions,
  world: World,
): Promise<Provider> {
  const address = parseFarmUrls(urls);
  checkFarmOptions(options, address);
  const name = clientName(options.name);
  const holder = `${name}.${incarnation()}`;
  const label = labelOf(options.label);
  const stores = await storesOf(address, holder, options, world);
  const { ttlMaxMs, maxStoreLatencyMs: delayMs, maxClockSkewMs, clockRateError } = address.settings;
  if (address.ground === "delta")
    return openFarm(stores, world, { holder, label, leaseMsMax: ttlMaxMs, delayMs, clockRateError });
  const { openGrid } = await import("../flease/stores/open.js");
  const settings = { ttlMaxMs, delayMs, maxClockSkewMs, clockRateError };
  const events = eventLog(options.logger ?? silent);
  const onFault = (reason: string) => events.log("clock-fault", `clock fault: ${reason}`, { reason });
  return openGrid(stores, world, { name, label, incarnation, onFault, ...settings });
}

/**
 * Opens the same stores for the other algorithms of the paper ({@link FarmParts}).
 *
 * Rejects as {@link openFarmLeases}, with `INVALID_URL` for `flease+…`.
 */
export async function openFarmParts(
  urls: readonly string[],
  options: FarmOptions,
  world: World,
): Promise<FarmParts> {
  const address = parseFarmUrls(urls);
  checkFarmOptions(options, address);
  if (address.ground !== "delta")
    throw new LeaseholdError("INVALID_URL", "the parts of the paper need delta+KIND:… stores");
  const holder = `${clientName(options.name)}.${incarnation()}`;
  const stores = await storesOf(address, holder, options, world);
  const { ttlMaxMs: leaseMsMax, maxStoreLatencyMs: delayMs, clockRateError } = address.settings;
  const label = labelOf(options.label);
  return openParts(stores, world, { holder, label, leaseMsMax, delayMs, clockRateError });
}

async function storesOf(
  address: FarmAddress,
  writer: string,
  options: FarmOptions,
  world: World,
): Promise<readonly Store[]> {
  const stores = await bareStoresOf(address, writer, options, world);
  return stores.map((store) => new ObservedStore(store));
}

async function bareStoresOf(
  { places }: FarmAddress,
  writer: string,
  options: FarmOptions,
  world: World,
): Promise<readonly Store[]> {
  const [first] = places;
  if (first!.scheme === "memory") return openMemoryStores(first!.url.pathname, world, writer);
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  return openStores(places, { writer, world, timeoutMs });
}

function checkFarmOptions(options: FarmOptions, { ground, places }: FarmAddress): void {
  const kind = `${ground}+${places[0]!.scheme}`;
  const why = `${kind}: stores have their own credentials, and there are no members`;
  checkOpenOptions(options, participantOptionNames, why);
}

/**
 * Opens leases on one store, with each record in the same cell as the data that it guards.
 *
 * Rejects as {@link openFarmLeases}, with `UNSUPPORTED` for more than one store, or one that cannot compare
 * and set.
 */
export async function openStoredCells(url: string, options: FarmOptions, world: World): Promise<StoredCells> {
  const address = parseFarmUrls([url]);
  checkFarmOptions(options, address);
  const holder = `${clientName(options.name)}.${incarnation()}`;
  const [first, ...others] = await storesOf(address, holder, options, world);
  // A farm in memory always has three.
  const [place] = address.places;
  if (place!.scheme === "memory") await Promise.all(others.map((store) => store.close()));
  const isFit = address.ground === "delta" && address.places.length === 1 && first!.traits.kind === "atomic";
  if (!isFit) {
    await Promise.all([first!, ...others].map((store) => store.close()));
    const why = "a datum has one place: give one store that compares and sets, as delta+KIND:…";
    throw new LeaseholdError("UNSUPPORTED", why);
  }
  const store = new DatumStore(first!);
  const { ttlMaxMs: leaseMsMax, maxStoreLatencyMs: delayMs, clockRateError } = address.settings;
  const label = labelOf(options.label);
  const provider = await openFarm([store], world, { holder, label, leaseMsMax, delayMs, clockRateError });
  return new StoredCells(new LeaseManager(provider, world), store, world.timers);
}
