import type { SimServer } from "../world/server.js";
import type { CoreWorld } from "../world/world.js";

/**
 * Only a voter leads, by the newest membership of its own log. One that a change removes may lead until that
 * is committed (thesis 4.2.2).
 */
export function checkLeader(world: CoreWorld, server: SimServer): void {
  const { commit, membership } = server.replica!.status();
  if (membership.voters.includes(server.id)) return;
  const isLeaving = server.disk.recovered.entries.some(
    (entry) =>
      entry.kind === "config" &&
      entry.index > commit &&
      entry.change.kind === "remove" &&
      entry.change.member === server.id,
  );
  if (!isLeaving) world.report("membership", `${server.id} leads, and has no vote`);
}

/** One change at a time: the one before is committed first (thesis 4.1). */
export function checkChanges(world: CoreWorld, server: SimServer): void {
  if (world.plan.membershipEveryMs === undefined) return;
  const { commit } = server.replica!.status();
  let changes = 0;
  for (const entry of server.disk.recovered.entries)
    if (entry.index > commit && entry.kind === "config") changes += 1;
  if (changes > 1) world.report("membership", `${server.id} has ${changes} changes under way`);
}

/**
 * A server that was removed, and does not know it, deposes nobody (thesis 4.2.3). And all members agree on
 * who they are.
 */
export function checkMembers(world: CoreWorld): void {
  const { lateElections } = world.counters;
  if (lateElections > 0)
    world.report("undisturbed", `there were ${lateElections} elections when nothing went wrong any more`);
  const { all } = world.reference.state.members;
  if (all.length === 0) return;
  const voters = all.filter(({ joining, learner }) => !joining && !learner).map(({ id }) => id);
  for (const server of world.members()) {
    const { membership } = server.replica!.status();
    const found = [...membership.voters].sort((one, other) => (one < other ? -1 : 1));
    if (found.join() !== voters.join())
      world.report(
        "membership",
        `${server.id} counts the votes of ${found.join()}, and not ${voters.join()}`,
      );
  }
}
