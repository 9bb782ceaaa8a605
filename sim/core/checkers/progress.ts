import type { CoreWorld } from "../world.js";
import { CoreViolationError } from "../violation.js";

/** When nothing goes wrong any more, the cluster works: it has one leader, all servers follow, and leases without holders end. */
export function checkProgress(world: CoreWorld): void {
  const { reference, servers } = world;
  const leaders = servers.filter((server) => server.leads);
  if (leaders.length !== 1) throw new CoreViolationError("progress", `there are ${leaders.length} leaders`);
  for (const server of servers) {
    const { applied } = server.replica!.status();
    if (applied !== reference.index)
      throw new CoreViolationError("progress", `${server.id} has applied ${applied} of ${reference.index}`);
  }
  const { size } = reference.state.leases;
  if (size > 0) throw new CoreViolationError("expiry", `${size} leases that nobody refreshes have not ended`);
}
