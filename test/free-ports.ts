import { createServer } from "node:net";

/**
 * Below the range of ephemeral ports (from 32768 on Linux, from 49152 elsewhere): a port of that range may be
 * taken between the check and its use. Each process has a part of its own, so that tests running in parallel
 * don't find the same ports.
 */
const firstPort = 10_000;
const portsOfProcess = 100;
const processes = 220;

const own = firstPort + (process.pid % processes) * portsOfProcess;
let given = 0;

/**
 * Consecutive ports that were free a moment ago; members need to know each other's ports before they listen.
 * Other callers in this process don't get any of them soon.
 */
export async function freePorts(count: number): Promise<number[]> {
  for (let tries = 0; tries < portsOfProcess; tries += count) {
    // A row that would not fit starts again at the first port.
    if ((given % portsOfProcess) + count > portsOfProcess) given = 0;
    const row = Array.from({ length: count }, () => own + given++);
    const free = await Promise.all(row.map(isFree));
    if (free.every(Boolean)) return row;
  }
  throw new Error(`no ${count} free ports from ${own} on`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listens = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => resolve(true));
  });
  if (listens) await new Promise((resolve) => server.close(resolve));
  return listens;
}
