import { createServer } from "node:net";

const HOST = "127.0.0.1";

/**
 * `count` ports on loopback that are free now: from `first` on, and any other in place of one that is taken.
 */
export async function freePorts(first: number, count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = first; port < first + count; port += 1) {
    const free = (await tryPort(port)) ?? (await tryPort(0));
    if (free === undefined) throw new Error("no free port on 127.0.0.1");
    ports.push(free);
  }
  return ports;
}

/** The port that could be listened on, or `undefined`; port 0 lets the system choose. */
function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(undefined));
    server.listen({ port, host: HOST, exclusive: true }, () => {
      const address = server.address();
      const found = typeof address === "object" && address !== null ? address.port : undefined;
      server.close(() => resolve(found));
    });
  });
}
