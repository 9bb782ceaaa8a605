// Members in processes of their own on loopback, for measurements.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts the members and waits until all have their recovery wait behind them. `own` has what differs between them. */
export async function startCluster(settings, own = () => ({}), ids = ["a", "b", "c"]) {
  const ports = [];
  for (const _ of ids) ports.push(await freePort());
  const members = Object.fromEntries(ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
  const script = fileURLToPath(new URL("member.mjs", import.meta.url));
  const children = ids.map((id) =>
    fork(script, [JSON.stringify({ id, members, ...settings, ...own(id) })], { execArgv: ["--expose-gc"] }),
  );
  await Promise.all(
    children.map(async (child) => {
      let [message] = await once(child, "message");
      while (message !== "ready") [message] = await once(child, "message");
    }),
  );
  return {
    urls: Object.values(members).map((address) => `flease://${address}`),
    pids: children.map((child) => child.pid),
    /** CPU time and heap of each member. */
    async usage() {
      return Promise.all(
        children.map(async (child) => {
          child.send("usage");
          const [usage] = await once(child, "message");
          return usage;
        }),
      );
    },
    /** kill -9. */
    kill(...lost) {
      for (const id of lost) children[ids.indexOf(id)].kill("SIGKILL");
    },
    async stop() {
      const alive = children.filter((child) => child.connected);
      for (const child of alive) child.disconnect();
      await Promise.all(alive.map((child) => once(child, "exit")));
    },
  };
}
