// The figures that are measured of each system. Each part lists the abilities that it needs of the client and
// the most rounds, and returns rows: [figure, unit, value, parameters].
import { setTimeout as sleep } from "node:timers/promises";
import { usageOf } from "./room.mjs";

const many = 512;
const widthUnderLoss = 64;

/** The rate, times and processor time of one kind of operation. */
function rows(figure, { done, seconds, clientCpuUs, serversCpuUs, quantiles }, inFlight) {
  const one = (name, unit, value) => [`${figure} ${name}`, unit, value, { inFlight }];
  const times = [
    ["median", 0.5],
    ["99th percentile", 0.99],
    ["99.9th percentile", 0.999],
  ].map(([name, q]) => one(`time, ${name}`, "µs", quantiles?.[q]));
  return [
    one("rate", "operations/s", done / seconds),
    ...(quantiles === undefined ? [] : times),
    one("CPU, client", "µs/operation", clientCpuUs / done),
    one("CPU, servers", "µs/operation", serversCpuUs / done),
    one("CPU, all processes", "µs/operation", (clientCpuUs + serversCpuUs) / done),
  ];
}

async function operations(running, width, { needsTimes }, ms) {
  const measure = (call, forMs) => running.measure(call, { width, forMs, needsTimes });
  const acquired = await measure("acquire", ms.acquire);
  const renewed = running.abilities.includes("renew") ? await measure("renew", ms.renew) : undefined;
  await running.measure("release");
  const pairs = await measure("pairs", ms.pairs);
  return [
    ...rows("acquire", acquired, width),
    ...(renewed === undefined ? [] : rows("renew", renewed, width)),
    ...rows("acquire and release", pairs, width),
  ];
}

/**
 * Warms up servers before their memory is measured: afterwards the code is compiled and buffers exist, but
 * memory for many leases is not yet allocated.
 */
async function warmUpForMemory(running) {
  for (let times = 0; times < 5; times += 1) {
    await running.measure("acquire", { width: many, forMs: 1_000, max: 1_000, needsTimes: false });
    await running.measure("release");
  }
  return [];
}

async function memory(running, { round }) {
  if (round < 0) return warmUpForMemory(running);
  const leases = 50_000;
  const state = async () => ({
    client: await running.measure("heap"),
    heap: await running.heapBytes(),
    resident: running.residentBytes(),
  });
  const before = await state();
  await running.measure("acquire", { width: many, forMs: 4_000, max: leases, needsTimes: false });
  const after = await state();
  await running.measure("release");
  const { held } = after.client;
  // A process without growth reused memory from before, so its figure says nothing about a lease. A server
  // keeps the memory of the first round, so only that round shows its growth.
  const row = (figure, now, then) =>
    now > then ? [[`held lease, ${figure}`, "bytes", (now - then) / held, { leases: held }]] : [];
  return [
    ...row("client", after.client.bytes, before.client.bytes),
    ...(round > 0 ? [] : row("member", after.resident, before.resident)),
    ...(after.heap === undefined ? [] : row("heap of a member", after.heap, before.heap)),
  ];
}

async function handOver(running) {
  const { quantiles } = await running.measure("handOver", { count: 40, forMs: 1_500 });
  return [
    ["hand-over", "ms", quantiles[0.5] / 1_000, {}],
    ["hand-over, 99th percentile", "ms", quantiles[0.99] / 1_000, {}],
  ];
}

/** By system, the time when a server was restarted after a kill. */
const restartedMs = new WeakMap();
/** The recovery wait of a restarted member of Leasehold: it has lost its state of the leases. */
const recoversWithinMs = 13_000;

/** A server that uses less than this share of a core has finished starting. */
const calmPart = 0.1;
const calmLookMs = 500;
const calmWithinMs = 15_000;

/**
 * Waits until a restarted server has finished starting. A Java virtual machine takes all cores for some
 * seconds, which would slow down the system that is measured next.
 */
async function calm(server) {
  const end = performance.now() + calmWithinMs;
  for (let part = 1; part > calmPart && performance.now() < end;) {
    const [before, from] = [usageOf(server.pid).cpuUs, performance.now()];
    await sleep(calmLookMs);
    part = (usageOf(server.pid).cpuUs - before) / 1_000 / (performance.now() - from);
  }
}

async function failover(running, { round }) {
  await sleep(Math.max(0, (restartedMs.get(running) ?? -Infinity) + recoversWithinMs - performance.now()));
  const { server, kill, restart, which } = await running.killOne(round);
  const loaded = running.measure("load", { width: widthUnderLoss, afterMs: 3_000, atMostMs: 25_000 });
  // Awaited below. Without a handler, an earlier rejection would end the process.
  loaded.catch(() => {});
  await sleep(1_000);
  kill();
  try {
    const { longestMs } = await loaded;
    return [["failover gap", "ms", longestMs, { inFlight: widthUnderLoss, killed: which }]];
  } finally {
    restart();
    restartedMs.set(running, performance.now());
    await calm(server);
  }
}

export const parts = {
  // The first round counts, as servers keep the memory that they have had.
  memory: { needs: [], roundsMax: 3, warmsUp: true, measure: memory },
  throughput: {
    needs: [],
    roundsMax: Infinity,
    warmsUp: true,
    measure: (running, how) => operations(running, many, how, { acquire: 1_000, renew: 700, pairs: 800 }),
  },
  latency: {
    needs: [],
    roundsMax: Infinity,
    warmsUp: true,
    measure: (running, how) => operations(running, 1, how, { acquire: 700, renew: 500, pairs: 500 }),
  },
  "hand-over": { needs: ["wait"], roundsMax: Infinity, measure: handOver },
  failover: { needs: ["wait"], roundsMax: Infinity, measure: failover },
};
