/** Settings of a run with files: the leases are short, so that primaries change often. */
export { skewMs, ttlMs, offsetMsMax, rpcTimeoutMs, waitMsMax } from "../settings.js";

export const nodeNames = ["node-1", "node-2", "node-3"] as const;

/** Ports in each node's network namespace: one for the lease cluster, one for the nodes of files. */
export const leasePort = 7400;
export const filesPort = 7500;

/** The smallest block size allowed. A client's write lies within one block, and a file has several blocks. */
export const blockBytes = 512;

/** The longest that a node works on one call, ms. */
export const callMsMax = 6_000;
