// Held leases under overload: one client holds leases of ten seconds that renew themselves, another runs 512
// acquire-and-release loops, with three members on plain TCP. Part one: no other load. Part two: with four
// busy loops on the same cores. Part three: members and clients are limited to a share of a core each
// (control groups, as root on Linux; without these, stopped and continued in turn). Part four: no limits
// again. `overload.mjs SECONDS LEASES SHARE`: seconds of each part (30), number of held leases (20000), and
// the share of a core in part three (0.1). Prints one JSON object a line, and exits with 1 if a lease was
// lost.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startCluster } from "./cluster.mjs";

const seconds = Number(process.argv[2] ?? 30);
const leases = Number(process.argv[3] ?? 20_000);
const share = Number(process.argv[4] ?? 0.1);
const loops = 512;
const busyLoops = 4;
const settings = { ttlMax: "10s", maxClockSkew: "20ms", rpcTimeout: "500ms" };

const progress = (text) => process.stderr.write(`${text}\n`);
const start = (role, count) => {
  const script = fileURLToPath(new URL("overload-client.mjs", import.meta.url));
  return fork(script, [JSON.stringify({ role, urls: cluster.urls, count })]);
};
const told = async (child) => (await once(child, "message"))[0];
const ask = (child) => {
  child.send("how is it");
  return told(child);
};

progress("starting three members; their recovery wait takes ten seconds");
const cluster = await startCluster(settings);
const holder = start("holder", leases);
await told(holder);
progress(`${leases} leases are held`);
const looper = start("looper", loops);
await told(looper);
const all = [...cluster.servers.map(({ pid }) => pid), holder.pid, looper.pid];

let lost = 0;
async function watch(part, forSeconds) {
  await Promise.all([ask(holder), ask(looper)]);
  let leastMs = Infinity;
  let done = 0;
  const failures = {};
  const perSecond = [];
  for (let second = 0; second < forSeconds; second += 1) {
    await sleep(1_000);
    const [held, looped] = await Promise.all([ask(holder), ask(looper)]);
    leastMs = Math.min(leastMs, held.leastMs ?? Infinity);
    lost = held.lost;
    done += looped.done;
    perSecond.push(looped.done);
    for (const [code, count] of Object.entries(looped.failures))
      failures[code] = (failures[code] ?? 0) + count;
    if (process.env.VERBOSE)
      progress(
        `${part} ${second}: ${held.lost} lost, least ${held.leastMs} ms, ${looped.done} acquisitions, ${JSON.stringify(looped.failures)}`,
      );
  }
  const rate = Math.round(done / forSeconds);
  console.log(
    JSON.stringify({ part, lost, leastRemainingMs: leastMs, acquisitionsPerSecond: rate, failures }),
  );
  return perSecond;
}

const usualRate = Math.max(1, ...(await watch("alone", seconds)));
const hogs = Array.from({ length: busyLoops }, () => spawn(process.execPath, ["-e", "for (;;) ;"]));
await watch(`beside ${busyLoops} busy loops`, seconds);
for (const hog of hogs) hog.kill("SIGKILL");

/** Limits a process to a share of a core. Returns a function that lifts the limit. */
function throttle(pid) {
  const group = `/sys/fs/cgroup/cpu/leasehold-${pid}`;
  const periodUs = 100_000;
  try {
    mkdirSync(group);
    writeFileSync(`${group}/cpu.cfs_period_us`, String(periodUs));
    writeFileSync(`${group}/cpu.cfs_quota_us`, String(periodUs * share));
    writeFileSync(`${group}/cgroup.procs`, String(pid));
    return async () => {
      writeFileSync("/sys/fs/cgroup/cpu/cgroup.procs", String(pid));
      await sleep(100);
      rmdirSync(group);
    };
  } catch {
    return stopAndContinue(pid);
  }
}

/** The same with signals, where there are no control groups. */
function stopAndContinue(pid) {
  const cycleMs = 200;
  let stopped = false;
  let timer;
  const turn = () => {
    stopped = !stopped;
    process.kill(pid, stopped ? "SIGSTOP" : "SIGCONT");
    timer = setTimeout(turn, cycleMs * (stopped ? 1 - share : share));
  };
  turn();
  return async () => {
    clearTimeout(timer);
    process.kill(pid, "SIGCONT");
  };
}

const free = all.map(throttle);
await watch(`held to ${share} of a core each`, 2 * seconds);
await Promise.all(free.map((end) => end()));
const after = await watch("free again", seconds);
const recovered = after.findIndex((rate) => rate >= usualRate / 2);
console.log(
  JSON.stringify({ figure: "half of the usual rate again after", unit: "s", value: recovered + 1 }),
);

for (const child of [holder, looper]) {
  child.disconnect();
  await once(child, "exit");
}
await cluster.stop();
process.exit(lost === 0 ? 0 : 1);
