// Three servers each, on loopback, with their data on this machine's disk: ZooKeeper and etcd from Debian's packages, and the
// consistent core. All are ended by their process ids.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { open } from "../../dist/src/index.js";
import { freePort } from "../processes.mjs";

const count = 3;
const startsWithinMs = 30_000;
const probeMs = 2_000;

/** Linux counts processor time in ticks of a hundredth of a second. */
const tickUs = 10_000;
function cpuUsOf(pid) {
  const [, rest] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * tickUs;
}

async function until(holds, what) {
  const deadline = performance.now() + startsWithinMs;
  while (performance.now() < deadline) {
    if (await holds().catch(() => false)) return;
    await sleep(100);
  }
  throw new Error(`${what} did not start`);
}

/** None outlives this process, however it ends. */
const running = new Set();
process.once("exit", () => {
  for (const servers of running) servers.kill();
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

class Servers {
  #root = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  #children = [];

  constructor() {
    running.add(this);
  }

  folder(name) {
    const folder = join(this.#root, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  run(command, words) {
    const child = spawn(command, words, { stdio: "ignore" });
    this.#children.push(child);
  }

  cpuUs() {
    return this.#children.reduce((total, child) => total + cpuUsOf(child.pid), 0);
  }

  kill() {
    for (const child of this.#children) child.kill("SIGKILL");
    rmSync(this.#root, { recursive: true, force: true });
    running.delete(this);
  }

  async stop() {
    const exits = this.#children
      .filter(({ exitCode }) => exitCode === null)
      .map((child) => once(child, "exit"));
    this.kill();
    await Promise.all(exits);
  }
}

async function ports(each) {
  const all = [];
  for (let index = 0; index < count; index += 1) {
    const own = [];
    for (let port = 0; port < each; port += 1) own.push(await freePort());
    all.push(own);
  }
  return all;
}

/** What a server says to one of ZooKeeper's words of four letters. */
async function asked(port, word) {
  const socket = connect(port, "127.0.0.1");
  socket.write(word);
  let text = "";
  for await (const chunk of socket) text += chunk;
  return Object.fromEntries(text.split("\n").map((line) => line.split("\t")));
}

/**
 * How many messages a server has sent and received, by its own counters: with its clients, and with the other servers (a
 * request handed on to the leader, a proposal, its acknowledgement, a commit).
 */
async function zooKeeperMessages(port) {
  const counters = await asked(port, "mntr");
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

export async function startZooKeeper() {
  const servers = new Servers();
  const addresses = await ports(3);
  const list = addresses.map(([, peer, vote], index) => `server.${index + 1}=127.0.0.1:${peer}:${vote}`);
  addresses.forEach(([port], index) => {
    const dataDir = servers.folder(`zk${index + 1}`);
    writeFileSync(join(dataDir, "myid"), String(index + 1));
    const file = join(dataDir, "zoo.cfg");
    const settings = {
      // Sessions may time out after 2 to 20 ticks: one second to ten.
      tickTime: 500,
      initLimit: 40,
      syncLimit: 20,
      dataDir,
      clientPort: port,
      maxClientCnxns: 0,
      "admin.enableServer": false,
      "4lw.commands.whitelist": "*",
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    writeFileSync(file, [...lines, ...list].join("\n"));
    const main = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
    servers.run("java", ["-Xmx512m", "-cp", "/usr/share/java/zookeeper.jar", main, file]);
  });
  const clientPorts = addresses.map(([port]) => port);
  const states = () => Promise.all(clientPorts.map((port) => zooKeeperMessages(port)));
  await until(async () => {
    const roles = (await states()).map(({ role }) => role);
    return roles.includes("leader") && roles.every((role) => role === "leader" || role === "follower");
  }, "ZooKeeper");
  return {
    addresses: clientPorts.map((port) => `127.0.0.1:${port}`).join(","),
    cpuUs: () => servers.cpuUs(),
    /** Of each server. What followers hand on, the leader receives. */
    async messages() {
      const all = await states();
      const handedOn = all.reduce((total, one) => total + one.handedOn, 0);
      return all.map(({ role, clients, servers: others }) => ({
        role,
        clients,
        servers: others + (role === "leader" ? handedOn : 0),
      }));
    },
    stop: () => servers.stop(),
  };
}

/** Servers with etcd's command line: etcd's own, and the core's. */
async function startLikeEtcd(what, command, ...words) {
  const servers = new Servers();
  const addresses = await ports(2);
  const peers = addresses.map(([, port], index) => `s${index}=http://127.0.0.1:${port}`).join(",");
  addresses.forEach(([client, peer], index) => {
    const clients = `http://127.0.0.1:${client}`;
    const own = `http://127.0.0.1:${peer}`;
    const flags = { name: `s${index}`, "data-dir": servers.folder(`s${index}`), "initial-cluster": peers };
    const urls = {
      "listen-client-urls": clients,
      "advertise-client-urls": clients,
      "listen-peer-urls": own,
      "initial-advertise-peer-urls": own,
    };
    servers.run(command, [
      ...words,
      ...Object.entries({ ...flags, ...urls }).flatMap(([name, value]) => [`--${name}`, value]),
    ]);
  });
  const url = `core://${addresses.map(([client]) => `127.0.0.1:${client}`).join(",")}`;
  await until(async () => {
    const leases = await open(url, { name: "probe" });
    try {
      const lease = await leases.tryAcquire("probe", { signal: AbortSignal.timeout(probeMs) });
      await lease?.release();
      return lease !== undefined;
    } finally {
      await leases.close();
    }
  }, what);
  return { url, cpuUs: () => servers.cpuUs(), stop: () => servers.stop() };
}

export const startEtcd = () => startLikeEtcd("etcd", "etcd");

const main = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));
export const startCore = () => startLikeEtcd("the core", process.execPath, main, "core");
