/**
 * Membership: `leasehold/membership`. A process registers itself under a name in a group, by a lease, and
 * sees who else is there, who comes and who goes.
 */
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { groupSettings, join } from "../membership/join.js";
import type { Group, GroupOptions } from "../membership/types.js";
import { WaistRegistry } from "../membership/waist-registry.js";
import { realWorld } from "../runtime/world.js";

export type { Group, GroupOptions, Member, MemberChange } from "../membership/types.js";

/**
 * Joins a group on any ground, or only watches it. A member is a lease named after the group, a slash and itself: so
 * `leases.list("workers/")` and `leasehold ls workers/` show the same, and a name is that of one process at a
 * time. One that has crashed is gone within its `ttl` and what the ground takes to see that
 * (`guarantees.takeoverMsMax`). What is told of others is a hint: who is in renewed its lease a short time
 * ago, and need not answer. A process that has lost its lease registers anew.
 *
 * At most 10,000 members in a group; more end it with `WATCH_TOO_WIDE`. A group is one of the 16 watches that
 * a participant may have, and keeps its process alive until it is left. `leases.close` ends it.
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
  const { jitterMs } = groupSettings(group, options);
  return join(group, new WaistRegistry(leases, group, world, options.ttl, jitterMs), world, options);
}
