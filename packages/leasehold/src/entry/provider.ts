/**
 * The port below the waist, for custom grounds and stores: `leasehold/provider`. A ground implements {@link
 * Provider}, which {@link leasesOf} turns into leases. A kind of storage implements {@link Store}; {@link
 * openStoreLeases} opens Δ-leases on one or more stores. Both have a conformance suite.
 */
import { keptAlive } from "../common/keep-alive.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { World } from "../common/ports.js";
import type { Provider } from "../lease/provider.js";
import type { Leases } from "../lease/types.js";
import { realWorld } from "../runtime/world.js";
import { openOwnStores, type OpenOwnStores, type StoreLeasesOptions } from "../stores/own-stores.js";

export type { Clock, Random, Timer, Timers, World } from "../common/ports.js";
export type * from "../lease/provider.js";
export type { Store, StoreAnswer, StoreRequest, StoreTraits } from "../delta/store.js";
export type { OpenOwnStores, StoreLeasesOptions } from "../stores/own-stores.js";
export { realWorld } from "../runtime/world.js";
export {
  runStoreConformance,
  type StoreCase,
  storeConformanceCases,
  type StoreGround,
} from "../stores/conformance.js";
export {
  type ConformanceCase,
  conformanceCases,
  type ConformanceGround,
  runConformance,
  type TestFramework,
} from "../testing/conformance.js";

/**
 * Creates the leases of a custom ground: the waist handles names, durations, local queues, waiting, automatic
 * renewal and `lead`; the provider does the rest. Test the result with `runConformance` (`docs/testing.md`).
 *
 * @param world clocks and timers. Default: those of this machine; `VirtualWorld` of `leasehold/testing` is
 * another.
 * @example
 * ```ts
 * import { leasesOf, type Provider } from "leasehold/provider";
 *
 * const opened = (provider: Provider) => leasesOf(provider);
 * ```
 */
export function leasesOf(provider: Provider, world: World = realWorld()): Leases {
  return new LeaseManager(provider, world);
}

/**
 * Opens Δ-leases on custom stores. `open` gets the unique name of this participant (under which a slotted
 * store keeps its slot), and returns the stores of the farm: one, or an odd number, of which a majority has
 * to answer. They are closed with the leases, and also if this call rejects.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `INVALID_DURATION`, `CONFIG_MISMATCH`, `NO_QUORUM`, `STORE_…`, and
 * what `open` throws.
 * @example
 * ```ts
 * import { openStoreLeases, type Store } from "leasehold/provider";
 *
 * const opened = (open: (url: string, writer: string) => Promise<Store>) =>
 *   openStoreLeases(
 *     (writer) => Promise.all(["http://h1", "http://h2", "http://h3"].map((url) => open(url, writer))),
 *     { ttlMax: "10s" },
 *   );
 * ```
 */
export async function openStoreLeases(
  open: OpenOwnStores,
  options: StoreLeasesOptions = {},
): Promise<Leases> {
  const world = realWorld();
  const opening = () => openOwnStores(open, options, world);
  return new LeaseManager(await keptAlive(world.keepAlive, opening), world);
}
