// A chart of the Flease talk: throughput while the disks are busy. Three servers or members each and one client, first beside
// nothing, then beside processes that write to the same disk and sync what they wrote, in turns.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { rowOf } from "../results.mjs";
import { Running } from "../running.mjs";
import { systems } from "../systems/index.mjs";

const measured = ["leasehold", "leasehold core", "etcd", "zookeeper"];
const inFlight = 128;
const rounds = 3;
const roundMs = 2_000;
const settleMs = 500;
const warmUpMs = 3_000;
const writers = 4;

async function besideWriters(folder, measure) {
  const script = fileURLToPath(new URL("disk-writer.mjs", import.meta.url));
  const children = Array.from({ length: writers }, (_, index) => fork(script, [`${folder}/${index}`]));
  await Promise.all(children.map((child) => once(child, "message")));
  await sleep(settleMs);
  try {
    return await measure();
  } finally {
    const exits = children.map((child) => once(child, "exit"));
    for (const child of children) child.disconnect();
    await Promise.all(exits);
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
