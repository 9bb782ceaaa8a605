// Two charts of the Flease talk. The first is throughput over the number of nodes: each node acquires and
// releases leases of its own, and each lease is on three nodes; for comparison three servers of ZooKeeper
// with the nodes as clients. The second, with the most nodes: the messages that each handles at each rate of
// leases.
import { setTimeout as sleep } from "node:timers/promises";
import { Nodes, sum } from "./nodes.mjs";
import { rowOf } from "../results.mjs";
import { startZooKeeper } from "./zookeeper.mjs";

const counts = [3, 10, 20, 30];
/** Of each node. */
const inFlight = 16;
const rounds = 3;
const roundMs = 1_200;
/**
 * Each member compiles its code for itself, and all share the cores: until then a lease costs ten times as
 * much.
 */
const warmUpMs = (count) => 2_000 + 600 * count;
/** ZooKeeper's clients keep running when more of them are started. */
const clientsWarmUpMs = (count) => 2_000 + 200 * count;
const settleMs = 400;
const offered = [250, 500, 1_000, 2_000, 4_000, 8_000];
const offeredMs = 1_500;

/**
 * Work and resource use so far, read while nothing runs: readings of busy servers would be late and cover a
 * different time.
 */
async function totals(nodes, servers) {
  const each = await nodes.drained();
  return { each, cpuUs: sum(each, "cpuUs") + (servers?.cpuUs() ?? 0), served: await servers?.messages() };
}

/**
 * The messages that each node or each kind of server sent and received, and their number (each is sent and
 * received).
 */
function messagesBetween(before, after) {
  if (after.served === undefined) {
    const handled = sum(after.each, "handled") - sum(before.each, "handled");
    return { count: handled / 2, perNode: [{ role: "each node", handled: handled / after.each.length }] };
  }
  const served = after.served.map(({ role, clients, servers }, index) => ({
    role,
    clients: clients - before.served[index].clients,
    servers: servers - before.served[index].servers,
  }));
  return {
    // The nodes do not count their own.
    count: sum(served, "clients") + sum(served, "servers") / 2,
    perNode: served.map(({ role, clients, servers }) => ({ role, handled: clients + servers })),
  };
}

/**
 * Lets the nodes work for some time. Returns leases a second, the cost of each in all processes, and the
 * messages of each node or server a second.
 */
async function look(nodes, servers, forMs, perSecond) {
  const before = await totals(nodes, servers);
  await nodes.run(inFlight, perSecond);
  await sleep(settleMs);
  const rate = await nodes.watch(forMs);
  await nodes.pause();
  const after = await totals(nodes, servers);
  const pairs = sum(after.each, "done") - sum(before.each, "done");
  const messages = messagesBetween(before, after);
  return {
    perSecond: rate,
    cpuUs: (after.cpuUs - before.cpuUs) / pairs,
    messages: messages.count / pairs,
    failed: sum(after.each, "failed") - sum(before.each, "failed"),
    perNode: messages.perNode.map(({ role, handled }) => ({ role, perSecond: (handled / pairs) * rate })),
  };
}

async function overNodes(system, nodes, servers, progress) {
  await look(nodes, servers, (servers === undefined ? warmUpMs : clientsWarmUpMs)(nodes.count));
  const looks = [];
  for (let round = 0; round < rounds; round += 1) looks.push(await look(nodes, servers, roundMs));
  const failed = sum(looks, "failed");
  const more = { nodes: nodes.count, each: inFlight, ...(failed > 0 && { failed }) };
  const row = (figure, unit, field) =>
    rowOf(
      figure,
      system,
      unit,
      looks.map((one) => one[field]),
      more,
    );
  const rows = [
    row("pairs rate over nodes", "pairs/s", "perSecond"),
    row("pair CPU over nodes", "µs/pair", "cpuUs"),
    row("pair messages over nodes", "messages/pair", "messages"),
  ];
  progress(
    `${system}, ${nodes.count} nodes: ${rows.map(({ median, unit }) => `${median} ${unit}`).join(", ")}`,
  );
  return rows;
}

/** Runs each of the offered loads, as long as the system keeps up. */
async function overLoad(system, nodes, servers, progress) {
  const rows = [];
  for (const perSecond of offered) {
    const seen = await look(nodes, servers, offeredMs, perSecond);
    const more = { nodes: nodes.count, offered: perSecond, pairsPerSecond: Math.round(seen.perSecond) };
    for (const { role, perSecond: messages } of seen.perNode)
      rows.push(rowOf("messages a node", system, "messages/s", [messages], { ...more, role }));
    progress(`${system}, ${perSecond} leases a second offered: ${more.pairsPerSecond} done`);
    if (seen.perSecond < 0.9 * perSecond) break;
  }
  return rows;
}

export async function measureMembers(room, progress) {
  const rows = [];
  for (const count of counts) {
    const nodes = await Nodes.members(count);
    rows.push(...(await overNodes("leasehold", nodes, undefined, progress)));
    if (count === counts.at(-1)) rows.push(...(await overLoad("leasehold", nodes, undefined, progress)));
    await nodes.stop();
  }
  return rows;
}

export async function measureZooKeeperNodes(room, progress) {
  const rows = [];
  const servers = await startZooKeeper(room);
  const nodes = new Nodes();
  for (const count of counts) {
    await nodes.growTo(count, { zookeeper: servers.ports });
    rows.push(...(await overNodes("zookeeper", nodes, servers, progress)));
  }
  rows.push(...(await overLoad("zookeeper", nodes, servers, progress)));
  await nodes.stop();
  servers.stop();
  return rows;
}
