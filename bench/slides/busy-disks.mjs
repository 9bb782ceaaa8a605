// A chart of the Flease talk: throughput while the disks are busy. Three servers or members and one client,
// alternately alone and beside processes that write to the same disk and sync.
import { setTimeout as sleep } from "node:timers/promises";
import { rowOf } from "../results.mjs";
import { Running } from "../running.mjs";
import { systems } from "../systems/index.mjs";
import { startChild, stopAll } from "./child.mjs";

const measured = ["leasehold", "leasehold core", "etcd", "zookeeper"];
const inFlight = 128;
const rounds = 3;
const roundMs = 2_000;
const settleMs = 500;
const warmUpMs = 3_000;
const writers = 4;

async function besideWriters(folder, measure) {
  const paths = Array.from({ length: writers }, (_, index) => `${folder}/${index}`);
  const children = await Promise.all(paths.map((path) => startChild("disk-writer.mjs", { path })));
  await sleep(settleMs);
  try {
    return await measure();
  } finally {
    await stopAll(children);
  }
}

async function measureOne(system, room, progress) {
  const running = await Running.start(
    systems.find(({ name }) => name === system),
    room,
  );
  const pairs = async (forMs) => {
    const { done, seconds } = await running.measure("pairs", { width: inFlight, forMs, needsTimes: false });
    return done / seconds;
  };
  await pairs(warmUpMs);
  const [quiet, busy] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    quiet.push(await pairs(roundMs));
    busy.push(await besideWriters(room.folder("writers"), () => pairs(roundMs)));
  }
  running.stop();
  for (const server of running.servers) server.kill();
  const row = (values, diskBusy) =>
    rowOf("pairs rate, disks", system, "pairs/s", values, { diskBusy, inFlight });
  const rows = [row(quiet, false), row(busy, true)];
  progress(`${system}: ${rows[0].median} pairs a second, ${rows[1].median} while the disks are busy`);
  return rows;
}

export async function measureBusyDisks(room, progress) {
  const rows = [];
  for (const system of measured) rows.push(...(await measureOne(system, room, progress)));
  return rows;
}
