// A hundred thousand waits for each way in which a wait can end, against three members in this process.
// Memory must stay flat and nothing may be left over. An argument scales the number: 0.05 takes some seconds.
// Exits with 1 if something leaks.
import { setTimeout as sleep } from "node:timers/promises";
import { startMember } from "leasehold";
import { openFleaseClient } from "../packages/leasehold/dist/flease/tcp/client.js";
import { realWorld } from "../packages/leasehold/dist/runtime/world.js";
import { LeaseManager } from "../packages/leasehold/dist/lease/manager/lease-manager.js";
import { freePort } from "./processes.mjs";

const scale = Number(process.argv[2] ?? 1);
const count = Math.round(100_000 * scale);
const slices = 10;
const resources = 50;
const width = 200;
/** Heap growth up to these bounds is noise: of all slices together, and of each operation. */
const noiseBytes = 1_000_000;
const bytesPerOperationMax = 16;

const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));
const progress = (text) => process.stderr.write(`${text}\n`);
const failures = [];
const check = (holds, what) => {
  if (!holds) failures.push(what);
};

/** The real world, with its pending timers counted. */
let timersPending = 0;
function countedWorld() {
  const world = realWorld();
  const after = (delayMs, run) => {
    let pending = true;
    const end = () => {
      if (pending) timersPending -= 1;
      pending = false;
    };
    timersPending += 1;
    const timer = world.timers.after(delayMs, () => {
      end();
      run();
    });
    return {
      cancel: () => {
        end();
        timer.cancel();
      },
    };
  };
  return { ...world, timers: { after } };
}

const ids = ["a", "b", "c"];
const ports = [];
for (const _ of ids) ports.push(await freePort());
const addresses = Object.fromEntries(ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
const settings = { ttlMax: "5s", maxClockSkew: "20ms", rpcTimeout: "500ms" };
const members = await Promise.all(ids.map((id) => startMember({ id, members: addresses, ...settings })));
await Promise.all(members.map((member) => member.ready()));

async function connect(name) {
  const world = countedWorld();
  const node = await openFleaseClient(Object.values(addresses), { name }, world);
  return { node, leases: new LeaseManager(node.provider, world) };
}
const holder = await connect("holder");
const waiter = await connect("waiter");
const other = await connect("other");
await sleep(500);
const timersAtFirst = timersPending;

const name = (index) => `soak/${index % resources}`;

/** Checks that the wait ends as expected: with `code`, or by the abort. */
async function endsWith(waiting, code) {
  try {
    const lease = await waiting;
    await lease.release();
    check(false, `a wait that should have ended with ${code} was granted`);
  } catch (error) {
    // On a busy machine, a wait may end with another code before members have answered or while they are
    // overloaded.
    const codes = code === "TIMEOUT" ? [code, "OVERLOADED", "NO_QUORUM"] : [code];
    if (!codes.includes(error.code) && error.name !== code) throw error;
  }
}

function abortedAfter(ms, index, leases = waiter.leases) {
  const stop = new AbortController();
  const waiting = leases.acquire(name(index), { signal: stop.signal });
  if (ms === 0) queueMicrotask(() => stop.abort());
  else setTimeout(() => stop.abort(), ms);
  return endsWith(waiting, "AbortError");
}

const held = new Map();
const holdAll = async () => {
  for (let index = 0; index < resources; index += 1)
    held.set(index, await holder.leases.acquire(name(index)));
};
const freeAll = async () => {
  for (const lease of held.values()) await lease.release();
  held.clear();
};

const stages = [
  {
    title: "timed out",
    needsHolder: true,
    run: (index) => endsWith(waiter.leases.acquire(name(index), { wait: 5 }), "TIMEOUT"),
  },
  { title: "aborted while attempting", needsHolder: true, run: (index) => abortedAfter(0, index) },
  { title: "aborted while asleep or queued", needsHolder: true, run: (index) => abortedAfter(8, index) },
  {
    title: "granted after a wait",
    needsHolder: false,
    run: async (index) => {
      const leases = index % 2 === 0 ? waiter.leases : other.leases;
      const lease = await leases.acquire(name(index), { wait: "5m" });
      await lease.release();
    },
  },
];

async function runSlice(stage, from, to) {
  let next = from;
  const worker = async () => {
    while (next < to) await stage.run(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

async function heapAfterGc() {
  await sleep(50);
  globalThis.gc();
  await sleep(10);
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

for (const stage of stages) {
  if (stage.needsHolder) await holdAll();
  await runSlice(stage, 0, Math.max(width, count / slices)); // Warms up.
  const started = performance.now();
  const heaps = [await heapAfterGc()];
  for (let slice = 0; slice < slices; slice += 1) {
    await runSlice(stage, (slice * count) / slices, ((slice + 1) * count) / slices);
    heaps.push(await heapAfterGc());
    progress(`${stage.title}: ${slice + 1} of ${slices}, heap ${(heaps.at(-1) / 1e6).toFixed(1)} MB`);
  }
  const grown = heaps.at(-1) - heaps[0];
  const more = { count, seconds: Math.round((performance.now() - started) / 1_000) };
  print(`waits that were ${stage.title}: growth of the heap`, "bytes an operation", grown / count, more);
  check(
    grown < Math.max(noiseBytes, bytesPerOperationMax * count),
    `${stage.title}: the heap grew by ${grown} bytes`,
  );
  if (stage.needsHolder) await freeAll();
}

await sleep(1_000);
for (const { node, leases } of [holder, waiter, other]) {
  const { size } = node.peer.proposer.instances;
  check(size === 0, `${leases.self} has ${size} instances left`);
  check(node.peer.nextDueMono === Infinity, `${leases.self} wants to be woken for something`);
}
print("timers that three idle clients had at first", "timers", timersAtFirst);
print("timers that they have at the end", "timers", timersPending);
check(timersPending <= timersAtFirst, `${timersPending - timersAtFirst} timers are left`);
const waitersLeft = Math.max(...members.map((member) => member.status().waiters));
print("waiters that a member still remembers", "waiters", waitersLeft);
check(waitersLeft === 0, `a member still remembers ${waitersLeft} waiters`);
const started = performance.now();
for (const { leases } of [holder, waiter, other]) await leases.close();
check(
  performance.now() - started < 1_000,
  "closing took longer than a second: somebody was still waited for",
);
check(timersPending === 0, `${timersPending} timers are left after closing`);
for (const member of members) await member.close();
for (const failure of failures) progress(`LEAK ${failure}`);
process.exitCode = failures.length === 0 ? 0 : 1;
