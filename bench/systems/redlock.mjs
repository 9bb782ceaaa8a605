// Redlock: npm's redlock over ioredis, on three Redis servers without persistence.
import { freePort } from "../processes.mjs";
import { until } from "../room.mjs";
import { connect } from "node:net";
import { once } from "node:events";

export const packages = ["redis-server"];

const ttlMs = 10_000;

export async function start(room) {
  const ports = [await freePort(), await freePort(), await freePort()];
  const servers = ports.map((port) => {
    const args = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"].map(String);
    return room.server(room.folder(`redis-${port}`), "/usr/bin/redis-server", args);
  });
  await until(async () => {
    await Promise.all(
      ports.map(async (port) => {
        const socket = connect(port, "127.0.0.1");
        await once(socket, "connect");
        socket.destroy();
      }),
    );
    return true;
  }, "three Redis servers answer");
  return { servers, connection: ports };
}

export async function client(ports) {
  const { default: Redis } = await import("ioredis");
  const { default: Redlock } = await import("redlock");
  const connections = ports.map((port) => {
    const redis = new Redis({ port, host: "127.0.0.1" });
    // Ignored: each failing operation reports the error, too.
    redis.on("error", () => {});
    return redis;
  });
  const redlock = new Redlock(connections);
  return {
    acquire: (name) => redlock.acquire([name], ttlMs, { retryCount: 0 }),
    // Polls every 200 ms, redlock's default.
    wait: (name) => redlock.acquire([name], ttlMs, { retryCount: 100 }),
    renew: (lock) => lock.extend(ttlMs),
    release: (lock) => lock.release(),
    close: () => connections.forEach((redis) => redis.disconnect()),
  };
}
