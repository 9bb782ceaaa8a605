// The cheapest lease on ZooKeeper: an ephemeral node with the resource's name is created, and deleted. The
// recipe for locks in `zookeeper.mjs` costs more.
import { once } from "node:events";
import zookeeper from "node-zookeeper-client";

const nothing = Buffer.alloc(0);
const { EPHEMERAL } = zookeeper.CreateMode;
/** The number of nodes created in one transaction. */
const together = 500;

export class ZooKeeperNodes {
  #client;

  static async connect(ports, sessionTimeoutMs) {
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
    const nodes = new ZooKeeperNodes();
    nodes.#client = zookeeper.createClient(hosts, { sessionTimeout: sessionTimeoutMs });
    const connected = once(nodes.#client, "connected");
    nodes.#client.connect();
    await connected;
    return nodes;
  }

  /** Acquires a lease, which ends with `release()` or with the session. */
  async acquire(resource) {
    const path = pathOf(resource);
    await promised((done) => this.#client.create(path, nothing, EPHEMERAL, done));
    return { release: () => promised((done) => this.#client.remove(path, -1, done)) };
  }

  /** Creates the nodes `prefix/0`, `prefix/1` and so on, which live as long as the session. */
  async createMany(prefix, count) {
    for (let begun = 0; begun < count; begun += together) {
      const transaction = this.#client.transaction();
      for (let index = begun; index < Math.min(count, begun + together); index += 1)
        transaction.create(pathOf(`${prefix}/${index}`), nothing, EPHEMERAL);
      await promised((done) => transaction.commit(done));
    }
  }

  async has(resource) {
    return Boolean(await promised((done) => this.#client.exists(pathOf(resource), done)));
  }

  close() {
    this.#client.close();
  }
}

const pathOf = (resource) => `/${resource.replaceAll("/", "-")}`;

function promised(call) {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });
}
