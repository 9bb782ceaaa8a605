import { AuthState } from "@leasehold/core/inner/state/auth-state.js";
import { sizeOf } from "@leasehold/core/inner/state/revisions.js";
import type { CoreWorld } from "../world/world.js";

/** The leader compacts when a tenth more has accumulated. */
const keptFactor = 1.1;

/**
 * At the end, with nothing in flight, the history is as short as configured and each server knows the size of
 * its state.
 */
export function checkSpace(world: CoreWorld): void {
  const { keepRevisions } = world.plan;
  for (const server of world.servers) {
    if (!server.isUp || server.replica!.status().applied < world.reference.index) continue;
    const { bytes, compacted, revision } = server.replica!.status();
    if (keepRevisions !== undefined && revision - compacted > keptFactor * keepRevisions + 1)
      world.report("space", `${server.id} has ${revision - compacted} revisions of history`);
    const expected = countedBytes(world);
    if (bytes !== expected)
      world.report("space", `${server.id} says that it has ${bytes} bytes, and not ${expected}`);
  }
}

function countedBytes({ reference: { state } }: CoreWorld): number {
  // Recounts users and roles.
  const auth = new AuthState();
  auth.restore({ users: state.auth.users(), roles: state.auth.roles() });
  let bytes = state.leases.bytes + auth.bytes;
  for (const history of state.revisions.histories()) for (const version of history) bytes += sizeOf(version);
  return bytes;
}
