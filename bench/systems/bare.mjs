// The bare exchange: the messages of an acquisition and nothing else. It is not a complete system: it cannot
// wait, renew or lose a server.
import { connect } from "../bare/proposer.mjs";
import { freePort, startProcesses } from "../processes.mjs";

export const packages = [];

export async function start() {
  const ports = [await freePort(), await freePort(), await freePort()];
  const { servers } = await startProcesses("bare/acceptor.mjs", ports.map(String));
  return { servers, connection: ports };
}

export const client = connect;
