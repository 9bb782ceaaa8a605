import type { CoreCluster } from "../core/support/core-cluster.js";

/** Replaces values that differ between runs or programs: ids, addresses, times. Revisions are kept. */
const replaced: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{14,16}\b/g, "<id>"],
  [/\b\d{15,20}\b/g, "<id>"],
  [/"(ts|target)":"[^"]*"/g, '"$1":"…"'],
  [/\b\d+(?:\.\d+)?(?:ms|µs|s)\b/g, "<time>"],
  [/"raft_term":\d+/g, '"raft_term":<term>'],
  [/"RaftTerm" : \d+/g, '"RaftTerm" : <term>'],
  // Addresses in a panic of etcdctl itself.
  [/\b0x[0-9a-f]+/g, "<address>"],
  [/("ttl"|"TTL"):\d+/g, "$1:<ttl>"],
];

/** Returns the normalised text as lines. */
export function normalised(text: string, { servers }: CoreCluster): string[] {
  let found = text;
  for (const { endpoint, name, peerPort } of servers)
    found = found.replaceAll(endpoint, `<${name}>`).replaceAll(`127.0.0.1:${peerPort}`, `<${name} to peers>`);
  for (const [pattern, by] of replaced) found = found.replaceAll(pattern, by);
  return found.trimEnd().split("\n");
}
