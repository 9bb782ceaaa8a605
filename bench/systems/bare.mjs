// The bare exchange: what an acquisition sends and receives, and nothing else. It is no system: it cannot wait,
// renew or lose a server.
import { connect } from "../bare/proposer.mjs";
import { freePort, startProcesses } from "../processes.mjs";

export const packages = [];

export async function start() {
  const ports = [await freePort(), await freePort(), await freePort()];
  const { servers } = await startProcesses("bare/acceptor.mjs", ports.map(String));
  return { servers, connection: ports };
}

export const client = connect;
