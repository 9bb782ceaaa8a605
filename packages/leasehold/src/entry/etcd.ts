/**
 * Leases of a consistent core that speaks etcd's v3 API, `leasehold core` or an etcd: `leasehold/etcd`. The
 * entry `leasehold` loads this code on demand; this entry loads it at once, and a bundle that imports only
 * this entry has no other ground.
 */
import { keptAlive } from "../common/keep-alive.js";
import type { NamedLeases } from "../etcd/named-leases.js";
import {
  type CoreOptions,
  type NamedLeaseOptions,
  openCoreLeases,
  openCoreNamedLeases,
} from "../etcd/open.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { realWorld } from "../runtime/world.js";

export type { NamedLease, NamedLeases } from "../etcd/named-leases.js";
export type { CoreOptions, NamedLeaseOptions } from "../etcd/open.js";

/**
 * Opens the leases of the core at these addresses, `core://host:port,host:port/prefix`, as `open` of
 * `leasehold` does (`docs/core-leases.md`).
 *
 * @throws LeaseholdError as `open`; `UNSUPPORTED` when `@grpc/grpc-js` or `@bufbuild/protobuf` is not installed.
 * @example
 * ```ts
 * import { openEtcd } from "leasehold/etcd";
 *
 * await using leases = await openEtcd(["core://10.0.0.1:2379,10.0.0.2:2379"], { name: "importer" });
 * await using lease = await leases.acquire("reports/nightly");
 * ```
 */
export async function openEtcd(urls: readonly string[], options: CoreOptions = {}): Promise<Leases> {
  const world = realWorld();
  const opening = () => openCoreLeases(urls, options, world);
  return new LeaseManager(await keptAlive(world.keepAlive, opening), world);
}

/**
 * Opens the named leases of the core at these addresses, `core://host:port,host:port`
 * (`docs/core-leases.md`): etcd leases with a name in addition to their id, as *Patterns of Distributed
 * Systems* describes them. They are not {@link Leases}: they are not renewed automatically, and have no
 * margin for clocks that differ.
 *
 * @throws LeaseholdError as {@link openEtcd}; the methods throw `UNSUPPORTED` with an etcd.
 * @example
 * ```ts
 * import { startCore } from "@leasehold/core";
 * import { openNamedLeases } from "leasehold/etcd";
 *
 * const core = await startCore({ name: "a", dataDir: "/var/lib/core" });
 * const named = await openNamedLeases([`core://${new URL(core.clientUrls[0]!).host}`]);
 * const lease = await named.register("carts/7", "10s");
 * if (lease !== undefined) {
 *   console.log(await named.refresh(lease)); // true
 *   console.log(await named.register("carts/7", "10s")); // undefined: the name is taken
 *   await named.revoke(lease);
 * }
 * named.close();
 * await core.close();
 * ```
 */
export async function openNamedLeases(
  urls: readonly string[],
  options: NamedLeaseOptions = {},
): Promise<NamedLeases> {
  return openCoreNamedLeases(urls, options, realWorld());
}
