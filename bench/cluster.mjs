// Members in processes of their own on loopback, for measurements.
import { freePort, startProcesses } from "./processes.mjs";

/**
 * Starts the members and waits until the recovery wait of each is over. `own` returns the options of one
 * member.
 */
export async function startCluster(settings, own = () => ({}), ids = ["a", "b", "c"]) {
  const ports = [];
  for (const _ of ids) ports.push(await freePort());
  const members = Object.fromEntries(ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
  const options = ids.map((id) => JSON.stringify({ id, members, ...settings, ...own(id) }));
  const processes = await startProcesses("member.mjs", options);
  return {
    ...processes,
    urls: Object.values(members).map((address) => `flease://${address}`),
    /** kill -9. */
    kill(...lost) {
      for (const id of lost) processes.servers[ids.indexOf(id)].kill();
    },
  };
}
