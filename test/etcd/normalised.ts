import type { CoreCluster } from "../core/support/core-cluster.js";

/** What is another each time, or at each program, is replaced: ids, addresses, times. Revisions stay. */
const replaced: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{14,16}\b/g, "<id>"],
  [/\b\d{15,20}\b/g, "<id>"],
  [/"(ts|target)":"[^"]*"/g, '"$1":"…"'],
  [/\b\d+(?:\.\d+)?(?:ms|µs|s)\b/g, "<time>"],
  [/"raft_term":\d+/g, '"raft_term":<term>'],
  [/"RaftTerm" : \d+/g, '"RaftTerm" : <term>'],
  // Where a panic of etcdctl itself has been.
  [/\b0x[0-9a-f]+/g, "<address>"],
  [/("ttl"|"TTL"):\d+/g, "$1:<ttl>"],
];

/** As lines. */
export function normalised(text: string, { servers }: CoreCluster): string[] {
  let found = text;
  for (const { endpoint, name, peerPort } of servers)
    found = found.replaceAll(endpoint, `<${name}>`).replaceAll(`127.0.0.1:${peerPort}`, `<${name} to peers>`);
  for (const [pattern, by] of replaced) found = found.replaceAll(pattern, by);
  return found.trimEnd().split("\n");
}
