// The bare exchange, the yardstick: the messages of an acquisition and nothing else.
import { freePort, startProcesses } from "../processes.mjs";
import { connect } from "./proposer.mjs";

/** Starts three acceptors in processes of their own, and connects a proposer in this process. */
export async function startExchange() {
  const ports = [await freePort(), await freePort(), await freePort()];
  const acceptors = await startProcesses("bare/acceptor.mjs", ports.map(String));
  const proposer = await connect(ports);
  return {
    ...proposer,
    usage: acceptors.usage,
    async stop() {
      proposer.close();
      await acceptors.stop();
    },
  };
}
