// The cost of waiting, over real sockets: three members in processes of their own, the clients in this one.
// Prints one JSON object a line: figure, unit, value. An argument selects one part: handover, crash, crowd.
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { clusterStatus, open } from "leasehold";
import { startCluster } from "./cluster.mjs";

const settings = { ttlMax: "3s", maxClockSkew: "20ms", rpcTimeout: "200ms" };
const parts = process.argv.slice(2);
const wanted = (part) => parts.length === 0 || parts.includes(part);

const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));
const progress = (text) => process.stderr.write(`${text}\n`);
const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)];

progress("starting three members; their recovery wait takes three seconds");
const cluster = await startCluster(settings);
const connect = (name) => open(...cluster.urls, { name });

/** The time from the call of `release` at one client until another, waiting client has the lease. */
async function handOver(count) {
  const [first, second] = [await connect("first"), await connect("second")];
  const timesMs = [];
  const restedMs = [];
  let lease = await first.acquire("hand-over");
  for (let round = 0; round < count; round += 1) {
    await sleep(20);
    const asked = performance.now();
    const free = await second.acquire("free");
    restedMs.push(performance.now() - asked);
    await free.release();
    const waiting = (round % 2 === 0 ? second : first).acquire("hand-over");
    await sleep(20);
    const released = performance.now();
    await lease.release();
    lease = await waiting;
    timesMs.push(performance.now() - released);
  }
  await lease.release();
  await Promise.all([first.close(), second.close()]);
  print("an acquisition of what is free after 20 ms of rest, median", "ms", quantile(restedMs, 0.5), {
    count,
  });
  print("hand-over, median", "ms", quantile(timesMs, 0.5), { count });
  print("hand-over, 99th percentile", "ms", quantile(timesMs, 0.99), { count });
}

/** The time from kill -9 of a holder, or its SIGSTOP, until a waiter has the lease. */
async function crash(count, signal) {
  const heir = await connect("heir");
  const timesMs = [];
  for (let round = 0; round < count; round += 1) {
    const script = fileURLToPath(new URL("holder.mjs", import.meta.url));
    const holder = fork(script, [JSON.stringify({ urls: cluster.urls, resource: "crash" })]);
    const exited = once(holder, "exit");
    await once(holder, "message");
    const waiting = heir.acquire("crash");
    await sleep(100 + Math.random() * 1_000);
    const killed = performance.now();
    holder.kill(signal);
    const lease = await waiting;
    timesMs.push(performance.now() - killed);
    await lease.release();
    holder.kill("SIGKILL");
    await exited;
    progress(`${signal} ${round + 1} of ${count}`);
  }
  const { takeoverMsMax: promisedMs } = heir.guarantees;
  await heir.close();
  print(`take-over after ${signal}, median`, "ms", quantile(timesMs, 0.5), { count });
  print(`take-over after ${signal}, longest`, "ms", Math.max(...timesMs), { count, promisedMs });
}

async function messagesAtMembers() {
  const reports = await clusterStatus(...cluster.urls);
  return reports.reduce((sum, { status }) => sum + status.counters["messages.received"], 0);
}

/**
 * `waiters` take turns for one resource for a while: the cost of a hand-over to the members, and how many
 * each waiter gets.
 */
async function crowd(waiters, clientCount, holdMs, forMs) {
  const clients = [];
  for (let index = 0; index < clientCount; index += 1) clients.push(await connect(`c${index}`));
  const resource = `crowd/${waiters}/${clientCount}/${holdMs}`;
  const turns = clients.map(() => 0);
  let counted = false;
  const stop = new AbortController();
  const contend = async (index) => {
    const leases = clients[index % clientCount];
    while (!stop.signal.aborted) {
      try {
        const lease = await leases.acquire(resource, { wait: "10m", signal: stop.signal });
        await sleep(holdMs);
        await lease.release();
        if (counted) turns[index % clientCount] += 1;
      } catch (error) {
        if (!stop.signal.aborted) throw error;
      }
    }
  };
  const contenders = Array.from({ length: waiters }, (_, index) => contend(index));
  await sleep(3_000);
  const before = await messagesAtMembers();
  counted = true;
  const started = performance.now();
  await sleep(forMs);
  counted = false;
  const messages = (await messagesAtMembers()) - before;
  const seconds = (performance.now() - started) / 1_000;
  stop.abort();
  await Promise.all(contenders);
  await Promise.all(clients.map((leases) => leases.close()));
  const handOvers = turns.reduce((sum, each) => sum + each, 0);
  const more = { waiters, clients: clientCount, holdMs };
  print("hand-overs", "a second", handOvers / seconds, more);
  print("messages received by the members", "a hand-over", messages / handOvers, more);
  print("fewest and most turns of a client", "turns", Math.min(...turns), {
    ...more,
    most: Math.max(...turns),
  });
}

if (wanted("handover")) await handOver(200);
if (wanted("crash")) {
  await crash(5, "SIGKILL");
  await crash(3, "SIGSTOP");
}
if (wanted("crowd")) {
  for (const waiters of [10, 100, 1_000]) {
    for (const clientCount of new Set([Math.min(20, waiters), waiters])) {
      await crowd(waiters, clientCount, 5, 10_000);
      await crowd(waiters, clientCount, 300, 10_000);
    }
  }
}
await cluster.stop();
