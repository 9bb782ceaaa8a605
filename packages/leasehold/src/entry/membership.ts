/**
 * Membership: `leasehold/membership`. A process registers itself under a name in a group by means of a lease,
 * and sees which other members are present, join and leave.
 */
import { keptAlive } from "../common/keep-alive.js";
import { openCoreRegistry } from "../etcd/open.js";
import type { OptionNames } from "../lease/option-names.js";
import type { Duration } from "../lease/options.js";
import { dataText } from "../lease/tenure-data.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { groupOptionNames, groupSettings, join } from "../membership/join.js";
import type { Group, GroupOptions } from "../membership/types.js";
import { WaistRegistry } from "../membership/waist-registry.js";
import type { TlsFiles } from "../runtime/options.js";
import { realWorld } from "../runtime/world.js";

export type { Group, GroupOptions, Member, MemberChange } from "../membership/types.js";

/**
 * Joins a group on any ground, or only watches it. A member is a lease, named after the group, a slash and
 * the member: `leases.list("workers/")` and `leasehold ls workers/` show the same members, and only one
 * process at a time has a name. A crashed member disappears after at most its `ttl` and the time that the
 * ground needs to notice (`guarantees.takeoverMsMax`). The view of others is a hint: a listed member renewed
 * its lease recently, but may not respond. A process that has lost its lease registers again.
 *
 * A group has at most 10,000 members; with more, it ends with `WATCH_TOO_WIDE`. A joined group counts as one
 * of the participant's 16 watches, and keeps the process alive until it is left. `leases.close` leaves it.
 *
 * @throws LeaseholdError `INVALID_NAME`, `INVALID_CONFIG`, `INVALID_DURATION`, `TTL_OUT_OF_RANGE`,
 * `UNSUPPORTED` for `data` where `guarantees.data` is false, `TIMEOUT`, `CLOSED`, `TOO_MANY_WAITERS`.
 * @example
 * ```ts
 * import { joinGroup } from "leasehold/membership";
 *
 * await using group = await joinGroup(leases, "workers", { name: "w1", data: { port: 8080 }, grace: "5s" });
 * for await (const { type, member } of group.changes()) {
 *   console.log(`${member.name} has ${type}`); // w1 has joined
 *   if (group.members.length === 1) break;
 * }
 * ```
 */
export async function joinGroup(leases: Leases, group: string, options: GroupOptions = {}): Promise<Group> {
  const world = leases instanceof LeaseManager ? leases.world : realWorld();
  const settings = groupSettings(group, options);
  const registry = new WaistRegistry(leases, group, world, options.ttl, settings.jitterMs);
  return join(group, registry, world, settings, options);
}

/** The options of joining a group that is stored as plain keys of a core. */
export interface CoreGroupOptions extends GroupOptions {
  /** Certificates, if the core requires them. */
  tls?: TlsFiles | undefined;
  /** Timeout for the first answer of a server. Default `"5s"`. */
  timeout?: Duration | undefined;
}

const coreGroupOptionNames: OptionNames<CoreGroupOptions> = { ...groupOptionNames, tls: true, timeout: true };

/**
 * Joins a group that is stored as plain keys of a consistent core or an etcd, at `core://host:port,host:port`
 * with an optional prefix. A member is a key, `leasehold/members/web/a` for `a` in the group `web`, with its
 * `data` as JSON, and every client of etcd can read and write such keys. A crashed member disappears at most
 * one second after its `ttl`, which is in whole seconds. There is no margin for clocks that differ: if only
 * one process at a time may have a name, use {@link joinGroup} with leases of the core.
 *
 * @throws LeaseholdError as {@link joinGroup}; `INVALID_URL`, `UNREACHABLE`, `NO_QUORUM`, `UNAUTHENTICATED`,
 * `PERMISSION_DENIED`; `UNSUPPORTED` when `@grpc/grpc-js` or `@bufbuild/protobuf` is not installed.
 * @example
 * ```ts
 * import { startCore } from "@leasehold/core";
 * import { joinCoreGroup } from "leasehold/membership";
 *
 * const core = await startCore({ name: "a", dataDir: "/var/lib/core" }); // or an etcd
 * const address = `core://${new URL(core.clientUrls[0]!).host}`;
 * const group = await joinCoreGroup(address, "web", { name: "a", ttl: "2s", grace: "5s" });
 * for await (const { type, member } of group.changes()) {
 *   console.log(`${member.name} has ${type}`); // a has joined
 *   break;
 * }
 * await group.leave();
 * await core.close();
 * ```
 */
export async function joinCoreGroup(
  url: string,
  group: string,
  options: CoreGroupOptions = {},
): Promise<Group> {
  const world = realWorld();
  const settings = groupSettings(group, options, coreGroupOptionNames);
  const { tls, timeout, ttl, data } = options;
  if (data !== undefined) dataText(data);
  const parts = { group, ttl, jitterMs: settings.jitterMs, tls, timeout };
  const registry = await keptAlive(world.keepAlive, () => openCoreRegistry([url], parts, world));
  return join(group, registry, world, settings, options);
}
