import { createServer } from "node:net";

/**
 * Below those that systems give to connections (from 32768 on Linux, from 49152 elsewhere): a port of that range may be gone
 * between the look and the use. Each process has a part of its own, so that tests beside this one do not find the same.
 */
const firstPort = 10_000;
const portsOfProcess = 100;
const processes = 220;

const own = firstPort + (process.pid % processes) * portsOfProcess;
let given = 0;

/** Ports that were free a moment ago; members need to know each other's before they listen. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = [];
  for (let tries = 0; servers.length < count; tries += 1) {
    if (tries === portsOfProcess) throw new Error(`no ${count} free ports from ${own} on`);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(own + (given++ % portsOfProcess), "127.0.0.1", () => resolve(true));
    });
    if (isFree) servers.push(server);
  }
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
