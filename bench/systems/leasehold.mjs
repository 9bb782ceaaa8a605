// Leasehold on three members, each a process, on plain TCP, with a cluster key (TLS-PSK) or with certificates.
import { startCluster } from "../cluster.mjs";
import { credentials } from "../credentials.mjs";
import { openLeases } from "./own-client.mjs";

export const packages = [];

const settings = { ttlMax: "10s", maxClockSkew: "20ms", rpcTimeout: "500ms" };

export async function start(room, way) {
  const security = credentials(way);
  const cluster = await startCluster(settings, security.member);
  return {
    servers: cluster.servers,
    connection: { urls: cluster.urls, options: security.client },
    heaps: async () => (await cluster.collected()).map(({ heapBytes }) => heapBytes),
  };
}

export const client = ({ urls, options }) => openLeases(urls, options);
