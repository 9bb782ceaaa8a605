import { openFarm } from "../delta/provider/open.js";
import type { Store } from "../delta/store.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { checkOptionNames, type OptionNames } from "../lease/option-names.js";
import type { World } from "../common/ports.js";
import type { Provider } from "../lease/provider.js";
import type { Duration } from "../lease/types.js";
import type { ParticipantOptions } from "../runtime/options.js";
import { clientName, labelOf } from "../runtime/participant.js";
import { incarnation } from "../runtime/world.js";
import { storesMax } from "./farm-address.js";
import { ObservedStore } from "./observed-store.js";

/** Opens the stores of a farm for the participant of this name. */
export type OpenOwnStores = (writer: string) => Promise<readonly Store[]>;

/**
 * Settings of a farm of custom stores. All participants must give the same settings, except for `name` and
 * `label`.
 */
export interface StoreLeasesOptions extends Pick<ParticipantOptions, "name" | "label"> {
  /** Δ, the longest lease. Default `"15s"`, or twelve times `maxStoreLatency` if that is more. */
  ttlMax?: Duration | undefined;
  /** δ, the bound on one operation. Default: the greatest `delayMs` of the stores. */
  maxStoreLatency?: Duration | undefined;
  /** ρ, how much faster or slower than real time a steady clock may run, from 0 to below 0.5. Default 0.1. */
  clockRateError?: number | undefined;
}

const storeLeasesOptionNames: OptionNames<StoreLeasesOptions> = {
  name: true,
  label: true,
  ttlMax: true,
  maxStoreLatency: true,
  clockRateError: true,
};

/** Opens Δ-leases on stores that the program implements. */
export async function openOwnStores(
  open: OpenOwnStores,
  options: StoreLeasesOptions,
  world: World,
): Promise<Provider> {
  checkOptionNames("openStoreLeases", options, storeLeasesOptionNames);
  const { name, label, ttlMax, maxStoreLatency, clockRateError } = options;
  const settings = {
    holder: `${clientName(name)}.${incarnation()}`,
    label: labelOf(label),
    leaseMsMax: ttlMax === undefined ? undefined : parseDuration(ttlMax, "ttlMax"),
    delayMs: maxStoreLatency === undefined ? undefined : parseDuration(maxStoreLatency, "maxStoreLatency"),
    clockRateError,
  };
  const stores = await open(settings.holder);
  const observed = stores.map((store) => new ObservedStore(store));
  if (stores.length <= storesMax) return openFarm(observed, world, settings);
  await Promise.all(stores.map((store) => store.close()));
  throw new LeaseholdError(
    "INVALID_CONFIG",
    `a farm has at most ${storesMax} stores; ${stores.length} were given`,
  );
}
