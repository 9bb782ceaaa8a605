import { createServer } from "node:net";
/** Ports that were free a moment ago; members need to know each other's before they listen. */
export async function freePorts(count) {
    const servers = await Promise.all(Array.from({ length: count }, async () => {
        const server = createServer();
        await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
        return server;
    }));
    const ports = servers.map((server) => server.address().port);
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    return ports;
}
