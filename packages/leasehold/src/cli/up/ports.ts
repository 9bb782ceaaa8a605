import { type AddressInfo, type Server, createServer } from "node:net";

const HOST = "127.0.0.1";

/**
 * `count` free ports on loopback, from `first` on, with any other in place of a used one. All are kept open
 * until the last is found, so that none is returned twice.
 */
export async function freePorts(first: number, count: number): Promise<number[]> {
  const servers: Server[] = [];
  try {
    for (let port = first; port < first + count; port += 1)
      servers.push((await listen(port)) ?? (await listen(0)) ?? noFreePort());
    return servers.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function noFreePort(): never {
  throw new Error(`no free port on ${HOST}`);
}

/** A server at the port, or `undefined` if the port is in use. For port 0 the system chooses one. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(undefined));
    server.listen({ port, host: HOST, exclusive: true }, () => resolve(server));
  });
}
