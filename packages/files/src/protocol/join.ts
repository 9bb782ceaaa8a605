import { greatest, LeaseholdError } from "leasehold/common";
import type { Peers, Standing } from "./messages.js";
import { pathsPerPage } from "./messages.js";
import type { Replica } from "./replica.js";
import { othersNeeded, type Standings } from "./standings.js";

/**
 * One attempt to join, by a node with an empty disk. True when its disk counts.
 * - If all nodes are present and none has joined, the cluster begins with these disks.
 * - If a joined node knows this disk from the beginning of the cluster, the disk has forgotten nothing.
 * - Otherwise the disk replaces another. The node registers it at enough others that every majority in which
 *   the lost disk voted includes one of them. A registered node attaches the registration to each of its
 *   votes, so that votes of the lost disk no longer count together with its own; in reply it returns the
 *   promises that it has made. This node knows nothing of their files until a primary has completed its copy.
 */
export async function tryToJoin(
  standings: Standings,
  contacts: readonly string[],
  replica: Replica,
  peers: Peers,
  timeoutMs: number,
): Promise<boolean> {
  const { node: self, nodes, store } = standings;
  if (!standings.isKeeper) return follow(standings, contacts, peers, timeoutMs);
  const others = await askAll(standings, peers, timeoutMs);
  const joined = others.filter((other) => other.joined);
  const generations = joined.map((other) => other.generations);
  if (joined.length === 0) {
    if (others.length < nodes.length - 1) return false;
    const stores = [...others, standings.standing()].map((each) => [each.node, each.store] as const);
    await standings.join(Object.fromEntries(stores), 0, []);
    return true;
  }
  const founders = joined[0]!.founders!;
  if (founders[self] === store) {
    await standings.join(founders, 0, generations);
    return true;
  }
  if (joined.length < othersNeeded(nodes.length)) return false;
  const generation =
    1 +
    greatest(
      generations.map((known) => known[self] ?? 0),
      0,
    );
  const told = await registerAt(joined, self, generation, store, peers, timeoutMs);
  if (told.length < othersNeeded(nodes.length)) return false;
  for (const other of told) await adoptPromises(other, replica, peers, timeoutMs);
  await standings.join(founders, generation, generations);
  return true;
}

/** A node added to a cluster keeps only contents: it learns which nodes to ask for their names. */
async function follow(
  standings: Standings,
  contacts: readonly string[],
  peers: Peers,
  timeoutMs: number,
): Promise<boolean> {
  for (const node of contacts.filter((each) => each !== standings.node)) {
    try {
      const { answer } = await peers.ask(node, "standing", {}, { timeoutMs });
      if (!answer.joined) continue;
      await standings.follow(answer);
      return true;
    } catch {
      // Another node may know.
    }
  }
  return false;
}

async function askAll(
  { node: self, nodes }: Standings,
  peers: Peers,
  timeoutMs: number,
): Promise<Standing[]> {
  const asked = nodes
    .filter((node) => node !== self)
    .map(async (node) => {
      const { answer } = await peers.ask(node, "standing", {}, { timeoutMs });
      if (String(answer.nodes) !== String(nodes) || answer.node !== node)
        throw new LeaseholdError(
          "CONFIG_MISMATCH",
          `${node} was started with the nodes ${answer.nodes.join(", ")}`,
        );
      return answer;
    });
  const settled = await Promise.allSettled(asked);
  return settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

async function registerAt(
  joined: readonly Standing[],
  self: string,
  generation: number,
  store: string,
  peers: Peers,
  timeoutMs: number,
): Promise<string[]> {
  const told = joined.map(async ({ node }) => {
    await peers.ask(node, "register", { node: self, generation, store }, { timeoutMs });
    return node;
  });
  const settled = await Promise.allSettled(told);
  return settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

async function adoptPromises(node: string, replica: Replica, peers: Peers, timeoutMs: number): Promise<void> {
  for (let after = ""; ;) {
    const { answer } = await peers.ask(node, "promises", { after }, { timeoutMs });
    for (const [path, epoch] of answer.promises) await replica.forget(path, BigInt(epoch));
    if (answer.promises.length < pathsPerPage) return;
    after = answer.promises.at(-1)![0];
  }
}
