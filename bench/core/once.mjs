// Figures measured once, not as a rate, on new servers each time: { figure, unit, value } of one system.
import { setTimeout as sleep } from "node:timers/promises";
import { usageOf } from "../room.mjs";
import { leaderOf } from "../systems/like-etcd.mjs";

/** Enough in flight that each server gets a connection. */
const oneEach = 192;
const many = 256;
const settlesMs = 5_000;

const residentMiB = ({ servers }) =>
  servers.reduce((sum, { pid }) => sum + usageOf(pid).residentBytes, 0) / 2 ** 20;

async function hold(system, load) {
  const { seconds } = await load("hold", many);
  await sleep(settlesMs);
  return [
    ["100,000 leases with a key each: to take them", "s", seconds],
    ["100,000 leases with a key each: memory of three servers", "MiB", residentMiB(system)],
  ];
}

async function expire(_, load) {
  const late = await load("expire", many);
  return [
    ["10,000 leases end: a watch hears this late, median", "s", late.median],
    ["10,000 leases end: a watch hears this late, at most", "s", late.most],
  ];
}

async function elect(system, load) {
  const gap = load("gap", oneEach, 6_000);
  await sleep(2_000);
  const leader = await leaderOf(system.connection);
  system.servers[leader].kill();
  const { seconds } = await gap;
  return [["the leader is killed: until the next put", "s", seconds]];
}

async function restart(system, load) {
  const { seconds } = await load("fill", many);
  const memory = residentMiB(system);
  for (const server of system.servers) server.kill();
  await sleep(500);
  for (const server of system.servers) server.restart();
  const again = await load("ready", oneEach);
  return [
    ["a million keys: to write them, a hundred in a transaction", "s", seconds],
    ["a million keys: memory of three servers", "MiB", memory],
    ["a million keys: all servers killed and started, until all answer", "s", again.seconds],
  ];
}

export const once = { hold, expire, elect, restart };
