// Three servers of ZooKeeper that report how many messages they have sent and received.
import { connect } from "node:net";
import { usageOf } from "../room.mjs";
import { start } from "../systems/zookeeper.mjs";

/** Session timeouts range from 2 to 20 ticks: one second to ten. */
const settings = { tickTime: 500, initLimit: 40, syncLimit: 20, "4lw.commands.whitelist": "srvr,mntr" };

/** A server's answer to `mntr`. */
async function countersOf(port) {
  const socket = connect(port, "127.0.0.1");
  socket.write("mntr");
  socket.setEncoding("utf8");
  let text = "";
  for await (const chunk of socket) text += chunk;
  return Object.fromEntries(text.split("\n").map((line) => line.split("\t")));
}

/**
 * The messages that a server has sent and received, by its own counters: with its clients, and with the other
 * servers (a request forwarded to the leader, a proposal, its acknowledgement, a commit).
 */
async function messagesOf(port) {
  const counters = await countersOf(port);
  const of = (name) => Number(counters[`zk_${name}`] ?? 0);
  const role = counters["zk_server_state"];
  const clients = of("packets_received") + of("packets_sent");
  const handedOn = role === "follower" ? of("cnt_learner_request_processor_queue_size") : 0;
  const servers =
    role === "leader"
      ? of("learners") * (2 * of("proposal_count") + of("commit_count"))
      : 2 * of("learner_proposal_received_count") + of("learner_commit_received_count") + handedOn;
  return { role, clients, servers, handedOn };
}

export async function startZooKeeper(room) {
  const { servers, connection: ports } = await start(room, undefined, settings);
  return {
    ports,
    cpuUs: () => servers.reduce((total, { pid }) => total + usageOf(pid).cpuUs, 0),
    /** The messages of each server. The leader receives what followers forward. */
    async messages() {
      const all = await Promise.all(ports.map(messagesOf));
      const handedOn = all.reduce((total, one) => total + one.handedOn, 0);
      return all.map(({ role, clients, servers: others }) => ({
        role,
        clients,
        servers: others + (role === "leader" ? handedOn : 0),
      }));
    },
    stop() {
      for (const server of servers) server.kill();
    },
  };
}
