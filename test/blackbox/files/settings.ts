/** The cluster of a play of files: short leases, so that primaries change often. */
export { skewMs, ttlMs, offsetMsMax, rpcTimeoutMs, waitMsMax } from "../settings.js";

export const nodeNames = ["node-1", "node-2", "node-3"] as const;

/** In each node's own network: where the members of the leases listen, and where the nodes of files do. */
export const leasePort = 7400;
export const filesPort = 7500;

/** The smallest there is: what a client writes lies in one block, and a file has several. */
export const blockBytes = 512;

/** The longest that a node tries one call. */
export const callMsMax = 6_000;
