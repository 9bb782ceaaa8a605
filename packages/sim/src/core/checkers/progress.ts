import type { CoreWorld } from "../world/world.js";

/**
 * After the last fault the cluster works: it has one leader, all servers follow, and leases without holders
 * end.
 */
export function checkProgress(world: CoreWorld): void {
  const { reference } = world;
  const servers = world.members();
  const leaders = servers.filter((server) => server.leads);
  if (leaders.length !== 1) world.report("progress", `there are ${leaders.length} leaders`);
  for (const server of servers) {
    const { applied } = server.replica!.status();
    if (applied !== reference.index)
      world.report("progress", `${server.id} has applied ${applied} of ${reference.index}`);
  }
  const { size } = reference.state.leases;
  if (size > 0) world.report("expiry", `${size} leases that nobody refreshes have not ended`);
}
