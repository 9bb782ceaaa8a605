// A chart of the Flease talk: throughput while the disks are busy. Three servers or members each and one client, first beside
// nothing, then beside processes that write to the same disk and sync what they wrote, in turns.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { startCluster } from "../cluster.mjs";
import { Nodes } from "./nodes.mjs";
import { rowOf } from "./rows.mjs";
import { startCore, startEtcd, startZooKeeper } from "./servers.mjs";

const inFlight = 128;
const rounds = 3;
const roundMs = 2_000;
const settleMs = 500;
const warmUpMs = 3_000;
const writers = 4;
const settings = { ttlMax: "3s", maxClockSkew: "20ms", rpcTimeout: "500ms" };

const starts = {
  leasehold: async () => {
    const cluster = await startCluster(settings);
    return { words: { url: cluster.urls[0] }, stop: () => cluster.stop() };
  },
  "leasehold core": async () => ofUrl(await startCore()),
  etcd: async () => ofUrl(await startEtcd()),
  zookeeper: async () => {
    const servers = await startZooKeeper();
    return { words: { zookeeper: servers.addresses }, stop: () => servers.stop() };
  },
};
const ofUrl = ({ url, stop }) => ({ words: { url }, stop });

async function besideWriters(measure) {
  const script = fileURLToPath(new URL("disk-writer.mjs", import.meta.url));
  const children = Array.from({ length: writers }, () => fork(script));
  await Promise.all(children.map((child) => once(child, "message")));
  try {
    return await measure();
  } finally {
    const exits = children.map((child) => once(child, "exit"));
    for (const child of children) child.disconnect();
    await Promise.all(exits);
  }
}

async function measureOne(system, progress) {
  const servers = await starts[system]();
  const nodes = new Nodes();
  await nodes.growTo(1, servers.words);
  await nodes.run(inFlight);
  await nodes.watch(warmUpMs);
  const perSecond = { quiet: [], busy: [] };
  const settled = async () => {
    await sleep(settleMs);
    return nodes.watch(roundMs);
  };
  for (let round = 0; round < rounds; round += 1) {
    perSecond.quiet.push(await settled());
    perSecond.busy.push(await besideWriters(settled));
  }
  await nodes.stop();
  await servers.stop();
  const row = (values, diskBusy) =>
    rowOf("pairs rate, disks", system, "pairs/s", values, { diskBusy, inFlight });
  const rows = [row(perSecond.quiet, false), row(perSecond.busy, true)];
  progress(`${system}: ${rows[0].median} pairs a second, ${rows[1].median} while the disks are busy`);
  return rows;
}

export async function measureBusyDisks(progress) {
  const rows = [];
  for (const system of Object.keys(starts)) rows.push(...(await measureOne(system, progress)));
  return rows;
}
