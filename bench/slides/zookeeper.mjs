// Three servers of ZooKeeper that say how many messages they have sent and received.
import { connect } from "node:net";
import { usageOf } from "../room.mjs";
import { start } from "../systems/zookeeper.mjs";

/** Sessions may time out after 2 to 20 ticks: one second to ten. */
const settings = { tickTime: 500, initLimit: 40, syncLimit: 20, "4lw.commands.whitelist": "srvr,mntr" };

/** What a server says to `mntr`. */
async function countersOf(port) {
  const socket = connect(port, "127.0.0.1");
  socket.write("mntr");
  socket.setEncoding("utf8");
  let text = "";
  for await (const chunk of socket) text += chunk;
  return Object.fromEntries(text.split("\n").map((line) => line.split("\t")));
}

/**
 * How many messages a server has sent and received, by its own counters: with its clients, and with the other servers (a
 * request handed on to the leader, a proposal, its acknowledgement, a commit).
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
    /** Of each server. What followers hand on, the leader receives. */
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
