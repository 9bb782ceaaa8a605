/**
 * Leases of a consistent core that speaks etcd's v3 API, `leasehold core` or an etcd: `leasehold/etcd`. What
 * `leasehold` loads when it is asked for, this loads at once, and a bundle of it has no other ground.
 */
import { keptAlive } from "../common/keep-alive.js";
import { type CoreOptions, openCoreLeases } from "../etcd/open.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { realWorld } from "../runtime/world.js";

export type { CoreOptions } from "../etcd/open.js";

/**
 * Opens the leases of the core at these addresses, `core://host:port,host:port/prefix`, as `open` of
 * `leasehold` does (`docs/core.md`).
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
