// Processes of one script, each of which says "ready", and tells how it is when asked.
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

/** Starts one process of `script` (beside this file) for each argument, and waits until all are ready. */
export async function startProcesses(script, args) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const children = args.map((arg) => fork(path, [arg], { execArgv: ["--expose-gc"] }));
  await Promise.all(
    children.map(async (child) => {
      let [message] = await once(child, "message");
      while (message !== "ready") [message] = await once(child, "message");
    }),
  );
  const ask = (what) =>
    Promise.all(
      children.map(async (child) => {
        child.send(what);
        const [usage] = await once(child, "message");
        return usage;
      }),
    );
  return {
    pids: children.map((child) => child.pid),
    /** CPU time of each so far, and heap in use. */
    usage: () => ask("usage"),
    /** The same, of the heap only what is left after a collection, which itself takes CPU time. */
    collected: () => ask("heap"),
    /** kill -9. */
    kill: (index) => children[index].kill("SIGKILL"),
    async stop() {
      const alive = children.filter((child) => child.connected);
      for (const child of alive) child.disconnect();
      await Promise.all(alive.map((child) => once(child, "exit")));
    },
  };
}
