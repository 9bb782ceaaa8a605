import type { World } from "../../common/ports.js";
import { openFleaseClient, untilMembers } from "./client.js";
import type { FleaseNode } from "./flease-node.js";
import type { MemberReport, MemberStatus, FleaseOptions } from "./types.js";

/** Extra time for members that have not answered when the others have. */
const stragglerMs = 500;

/** Asks every member of a cluster for its status. */
export async function askClusterStatus(
  addresses: readonly string[],
  options: FleaseOptions,
  world: World,
): Promise<MemberReport[]> {
  const node = await openFleaseClient(addresses, options, world);
  try {
    const voters = node.views.voters();
    await untilMembers(node, stragglerMs, world, () => node.reachable() === voters.length);
    return await Promise.all(voters.map((index) => report(node, index)));
  } finally {
    await node.close();
  }
}

async function report(node: FleaseNode, index: number): Promise<MemberReport> {
  const id = node.cluster.settings.members[index]!;
  const address = node.cluster.addresses[index]!;
  const link = node.link(index);
  if (link === undefined) return { id, address, reachable: false, reason: node.whyUnlinked(index).message };
  try {
    const status = (await node.transport.call(link, "status", {}, stragglerMs * 4)) as MemberStatus;
    return { id, address, reachable: true, status };
  } catch (error) {
    return { id, address, reachable: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
