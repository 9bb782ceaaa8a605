// Servers that have etcd's command line.
import { freePort } from "../processes.mjs";
import { until } from "../room.mjs";

/**
 * @param core the number of the processor core for a single server; without it, three servers run on any core
 */
export async function startLikeEtcd(room, what, command, words, core) {
  const names = core === undefined ? ["a", "b", "c"] : ["a"];
  const [program, ...first] =
    core === undefined ? [command, ...words] : ["taskset", "-c", String(core), command, ...words];
  const ports = [];
  for (const _ of names) ports.push([await freePort(), await freePort()]);
  const peers = ports.map(([, peer], index) => `${names[index]}=http://127.0.0.1:${peer}`).join(",");
  const servers = ports.map(([port, peer], index) => {
    const name = names[index];
    const folder = room.folder(`${what}-${name}`);
    const flags = {
      name,
      "data-dir": `${folder}/data`,
      "initial-cluster": peers,
      "listen-client-urls": `http://127.0.0.1:${port}`,
      "advertise-client-urls": `http://127.0.0.1:${port}`,
      "listen-peer-urls": `http://127.0.0.1:${peer}`,
      "initial-advertise-peer-urls": `http://127.0.0.1:${peer}`,
    };
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]);
    return room.server(folder, program, [...first, ...args]);
  });
  const hosts = ports.map(([port]) => `127.0.0.1:${port}`);
  await until(async () => (await leaderOf(hosts)) !== undefined, `servers of ${what} have a leader`);
  return { servers, connection: hosts };
}

/** The index of the leader, if all servers that answer agree. */
export async function leaderOf(hosts) {
  const { Etcd3 } = await import("etcd3");
  const said = await Promise.all(
    hosts.map(async (host) => {
      const client = new Etcd3({ hosts: host, retry: false, dialTimeout: 1_000 });
      try {
        const { leader, header } = await client.maintenance.status();
        return { leader, id: header.member_id };
      } finally {
        client.close();
      }
    }),
  );
  const index = said.findIndex(({ leader, id }) => leader === id);
  return index < 0 ? undefined : index;
}
