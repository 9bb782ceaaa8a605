import { setTimeout as sleep } from "node:timers/promises";
import { type CoreConfig, otherPeerUrls } from "../config/config.js";
import { type Identity, idText } from "../config/identity.js";
import { LeaseholdError, invalidConfig } from "leasehold/common";
import type { PeerWelcome } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import { askMembers } from "./ask-members.js";

/**
 * Time for attempts, ms: a server that was just told to add us may not have applied that yet, and one may be
 * down.
 */
const tryMs = 15_000;
const pauseMs = 300;

/**
 * Asks the servers in `--initial-cluster` for this server's identity: the member with its addresses, which
 * must have been added before (`etcdctl member add`).
 *
 * @throws LeaseholdError `INVALID_CONFIG` if they know no such member, or it has started before with another
 *   data directory; `UNREACHABLE` if none of them answers
 */
export async function join(config: CoreConfig): Promise<Identity> {
  const urls = otherPeerUrls(config);
  if (urls.length === 0)
    throw invalidConfig("--initial-cluster-state existing: --initial-cluster names no other server");
  const endMs = performance.now() + tryMs;
  for (;;) {
    const found = await tryAll(urls, config);
    if (!(found instanceof LeaseholdError)) return found;
    if (performance.now() > endMs) throw found;
    await sleep(pauseMs);
  }
}

async function tryAll(urls: readonly string[], config: CoreConfig): Promise<Identity | LeaseholdError> {
  let problem: LeaseholdError | undefined;
  for (const url of urls) {
    const answer = await askMembers(url, config.name, config.peerTls).catch(
      (error: unknown) => error as Error,
    );
    const found =
      answer instanceof Error
        ? new LeaseholdError("UNREACHABLE", `no server of the core at ${url}: ${answer.message}`)
        : identify(answer, config);
    if (!(found instanceof LeaseholdError)) return found;
    problem = found;
  }
  return problem!;
}

function identify({ cluster, members }: PeerWelcome, config: CoreConfig): Identity | LeaseholdError {
  const own = config.initialCluster.find(({ name }) => name === config.name)!;
  const self = members.find(({ peerUrls }) => [...peerUrls].sort().join() === own.peerUrls.join());
  if (self === undefined)
    return invalidConfig(
      `no member of the core has the addresses ${own.peerUrls.join()}: add it first (etcdctl member add)`,
    );
  // The member's promises were lost with that directory, so it must not continue under that id.
  if (self.name !== "")
    return invalidConfig(
      `the member ${idText(self.id)} at ${own.peerUrls.join()} has started before, with another data directory: ` +
        "remove it, and add it again",
    );
  const known = members.map(({ id, name, peerUrls }) => ({
    id,
    name: id === self.id ? config.name : name === "" ? idText(id) : name,
    peerUrls,
  }));
  return { id: self.id, cluster, members: known };
}
