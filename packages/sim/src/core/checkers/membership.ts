import type { CoreWorld } from "../world/world.js";

/**
 * A server that was removed without learning of it deposes no leader (thesis 4.2.3), and all members agree on
 * the membership.
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
