// ZooKeeper on three servers from Debian's package, through npm's node-zookeeper-client, with the lock of its
// recipes: each client creates a sequential ephemeral node below the resource's. The client with the lowest
// number holds the lock, and each other watches the node before its own. There is no renewal: one session
// holds all locks.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { freePort } from "../processes.mjs";
import { until } from "../room.mjs";

export const packages = ["zookeeper"];

const ids = [1, 2, 3];
const classPath = "/usr/share/java/zookeeper.jar";
const main = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/** @param own additional settings for zoo.cfg */
export async function start(room, way, own = {}) {
  const ports = [];
  for (const _ of ids) ports.push([await freePort(), await freePort(), await freePort()]);
  const others = ids.map((id, index) => `server.${id}=127.0.0.1:${ports[index].slice(1).join(":")}`);
  const servers = ids.map((id, index) => {
    const folder = room.folder(`zookeeper-${id}`);
    writeFileSync(`${folder}/myid`, String(id));
    const settings = {
      tickTime: 2_000,
      initLimit: 10,
      syncLimit: 5,
      dataDir: folder,
      clientPort: ports[index][0],
      maxClientCnxns: 0,
      "admin.enableServer": false,
      ...own,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    writeFileSync(`${folder}/zoo.cfg`, [...lines, ...others, ""].join("\n"));
    return room.server(folder, "java", ["-Xmx1g", "-cp", classPath, main, `${folder}/zoo.cfg`]);
  });
  const clientPorts = ports.map(([port]) => port);
  await until(
    async () => (await leaderOf(clientPorts)) !== undefined,
    "three ZooKeeper servers have a leader",
  );
  return { servers, connection: clientPorts };
}

/** Whether a server leads or follows, by its answer to `srvr`. */
async function modeOf(port) {
  const socket = connect(port, "127.0.0.1");
  socket.end("srvr");
  socket.setEncoding("utf8");
  let text = "";
  for await (const chunk of socket) text += chunk;
  return /^Mode: (\w+)$/m.exec(text)?.[1];
}

async function leaderOf(ports) {
  const modes = await Promise.all(ports.map(modeOf));
  const index = modes.indexOf("leader");
  return index < 0 || modes.includes(undefined) ? undefined : index;
}

const promised = (call) =>
  new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });

export async function client(ports) {
  const { default: zookeeper } = await import("node-zookeeper-client");
  const sequential = zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL;
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
  const session = zookeeper.createClient(hosts, { sessionTimeout: 10_000, retries: 0 });
  session.connect();
  await once(session, "connected");

  const pathOf = (name) => `/${name.replaceAll("/", "-")}`;
  const children = async (path) => (await promised((done) => session.getChildren(path, done))).toSorted();

  /** Creates a node below `parent`, and `parent` too if it is missing. Returns the new path. */
  async function enqueue(parent) {
    const both = session
      .transaction()
      .create(parent)
      .create(`${parent}/lock-`, undefined, undefined, sequential);
    try {
      const [, { path }] = await promised((done) => both.commit(done));
      return path;
    } catch (error) {
      if (error.name !== "NODE_EXISTS") throw error;
    }
    return promised((done) => session.create(`${parent}/lock-`, undefined, undefined, sequential, done));
  }

  async function wait(name) {
    const parent = pathOf(name);
    const own = await enqueue(parent);
    for (;;) {
      const queue = await children(parent);
      const place = queue.indexOf(own.slice(parent.length + 1));
      if (place === 0) return own;
      const before = `${parent}/${queue[place - 1]}`;
      await new Promise((resolve, reject) => {
        session.exists(before, resolve, (error, stat) => {
          if (error) reject(error);
          else if (!stat) resolve();
        });
      });
    }
  }

  return {
    acquire: wait,
    wait,
    release: (path) => promised((done) => session.remove(path, done)),
    leader: () => leaderOf(ports),
    close: () => session.close(),
  };
}
