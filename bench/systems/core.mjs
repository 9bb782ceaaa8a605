// Leasehold's consistent core on three servers, through Leasehold's own client.
import { fileURLToPath } from "node:url";
import { leaderOf, startLikeEtcd } from "./like-etcd.mjs";
import { openLeases } from "./own-client.mjs";

export const packages = [];

const program = fileURLToPath(new URL("../../packages/leasehold/dist/cli/main.js", import.meta.url));

export const start = (room, core) => startLikeEtcd(room, "core", process.execPath, [program, "core"], core);

export async function client(hosts) {
  const leases = await openLeases([`core://${hosts.join(",")}`]);
  return { ...leases, leader: () => leaderOf(hosts) };
}
