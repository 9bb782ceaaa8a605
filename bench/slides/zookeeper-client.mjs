// A lease on ZooKeeper as cheap as it gets: an ephemeral node of the resource's name is created, and deleted. The usual recipe for
// locks (a sequence of nodes, and a look at the children) costs more.
import { once } from "node:events";
import zookeeper from "node-zookeeper-client";

export function connectZooKeeper(addresses, sessionTimeoutMs) {
  const client = zookeeper.createClient(addresses, { sessionTimeout: sessionTimeoutMs });
  const connected = once(client, "connected");
  client.connect();
  return connected.then(() => client);
}

const pathOf = (resource) => `/${resource.replaceAll("/", "-")}`;
const nothing = Buffer.alloc(0);

export async function openZooKeeper(addresses) {
  const client = await connectZooKeeper(addresses, 10_000);
  return {
    acquire(resource) {
      const path = pathOf(resource);
      const lease = { release: () => promised((done) => client.remove(path, -1, done)) };
      return promised((done) => client.create(path, nothing, zookeeper.CreateMode.EPHEMERAL, done)).then(
        () => lease,
      );
    },
  };
}

function promised(call) {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });
}

/** Nodes that live as long as the session, a few hundred in a transaction. */
export async function createNodes(client, prefix, count) {
  const together = 500;
  for (let begun = 0; begun < count; begun += together) {
    const transaction = client.transaction();
    for (let index = begun; index < Math.min(count, begun + together); index += 1)
      transaction.create(`/${prefix}-${index}`, nothing, zookeeper.CreateMode.EPHEMERAL);
    await promised((done) => transaction.commit(done));
  }
}

export const hasNode = (client, path) => promised((done) => client.exists(path, done)).then(Boolean);
