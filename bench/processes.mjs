// Processes that run one script. Each sends "ready", and reports its state on request.
import { fork } from "node:child_process";
import { on, once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

/**
 * Below the system's range for outgoing connections, which could otherwise take a port before the server
 * starts.
 */
const ports = { first: 15_000, count: 15_000 };
const given = new Set();

/** Returns a free port of loopback, a different one each time. */
export async function freePort() {
  for (;;) {
    const port = ports.first + Math.floor(Math.random() * ports.count);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}

async function ready(child) {
  const messages = on(child, "message", { close: ["exit"] });
  for await (const [message] of messages) if (message === "ready") return;
  throw new Error(`${child.spawnargs.join(" ")} ended before it was ready`);
}

/** Starts one process of `script` (in this folder) for each argument, and waits until all are ready. */
export async function startProcesses(script, args) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const start = (arg) => fork(path, [arg], { execArgv: ["--expose-gc"] });
  const children = args.map(start);
  await Promise.all(children.map(ready));
  const ask = (what) =>
    Promise.all(
      children.map(async (child) => {
        child.send(what);
        // A restarted process may send progress messages meanwhile.
        for await (const [answer] of on(child, "message", { close: ["exit"] }))
          if (typeof answer === "object") return answer;
        throw new Error(`${child.spawnargs.join(" ")} ended`);
      }),
    );
  const servers = args.map((arg, index) => ({
    get pid() {
      return children[index].pid;
    },
    /** kill -9. */
    kill: () => children[index].kill("SIGKILL"),
    restart() {
      children[index] = start(arg);
    },
  }));
  return {
    servers,
    /** CPU time of each so far, and the heap in use. */
    usage: () => ask("usage"),
    /** The same, with the heap measured after a collection, which itself takes CPU time. */
    collected: () => ask("heap"),
    async stop() {
      const alive = children.filter((child) => child.connected);
      for (const child of alive) child.disconnect();
      await Promise.all(alive.map((child) => once(child, "exit")));
    },
  };
}
