// A first measurement of the hot paths over real sockets: three members in processes of their own, one client here.
// An argument says how they prove who they are: `plain` (the default), `certificates` or `key`.
// Prints one JSON object a line: figure, unit, value. Rates and times are medians of several rounds.
import { open } from "leasehold";
import { startCluster } from "./cluster.mjs";
import { credentials } from "./credentials.mjs";

const rounds = 5;
const operationsInFlight = 512;
const settings = { ttlMax: "10s", maxClockSkew: "20ms", rpcTimeout: "500ms" };

const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));
const progress = (text) => process.stderr.write(`${text}\n`);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)];
const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

progress("starting three members; their recovery wait takes ten seconds");
const security = credentials(process.argv[2] ?? "plain");
const cluster = await startCluster(settings, security.member);
const leases = await open(...cluster.urls, { name: "bench", ...security.client });

/** Runs `operation` for each name, `width` at a time; returns operations a second, CPU over all processes, and each one's time. */
async function measure(names, width, operation) {
  const membersBefore = await cluster.usage();
  const cpuBefore = cpuUs();
  const started = performance.now();
  const timesMs = [];
  let next = 0;
  const worker = async () => {
    while (next < names.length) {
      const name = names[next++];
      const from = performance.now();
      await operation(name);
      timesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  const seconds = (performance.now() - started) / 1_000;
  const own = cpuUs() - cpuBefore;
  const members = (await cluster.usage()).map((usage, index) => usage.cpuUs - membersBefore[index].cpuUs);
  return {
    perSecond: names.length / seconds,
    cpuUs: (own + members.reduce((sum, used) => sum + used, 0)) / names.length,
    clientCpuUs: own / names.length,
    timesMs,
  };
}

async function report(width, count) {
  const results = { acquire: [], renew: [], release: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const names = Array.from({ length: count }, (_, index) => `bench/${width}/${round}/${index}`);
    const held = new Map();
    const measured = {
      acquire: await measure(names, width, async (name) => held.set(name, await leases.acquire(name))),
      renew: await measure(names, width, (name) => held.get(name).renew()),
      release: await measure(names, width, (name) => held.get(name).release()),
    };
    // The first round warms up.
    if (round > 0) for (const [name, result] of Object.entries(measured)) results[name].push(result);
    progress(
      `${width} in flight, round ${round} of ${rounds}: ${Math.round(measured.acquire.perSecond)} acquisitions a second`,
    );
  }
  for (const [name, measured] of Object.entries(results)) {
    const more = { inFlight: width };
    print(`${name} rate`, "operations/s", median(measured.map((each) => each.perSecond)), more);
    print(`${name} CPU, all processes`, "µs/operation", median(measured.map((each) => each.cpuUs)), more);
    print(`${name} CPU, client`, "µs/operation", median(measured.map((each) => each.clientCpuUs)), more);
    const times = measured.flatMap((each) => each.timesMs);
    print(`${name} time, median`, "µs", quantile(times, 0.5) * 1_000, more);
    print(`${name} time, 99th percentile`, "µs", quantile(times, 0.99) * 1_000, more);
  }
}

async function bytesPerLease(count) {
  const heap = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const names = Array.from({ length: count }, (_, index) => `bench/held/${index}`);
  const [clientBefore, membersBefore] = [heap(), await cluster.usage()];
  const held = await Promise.all(names.map((name) => leases.acquire(name)));
  const [clientAfter, membersAfter] = [heap(), await cluster.usage()];
  print("held lease, client", "bytes", (clientAfter - clientBefore) / held.length);
  const perMember = membersAfter.map((usage, index) => usage.heapBytes - membersBefore[index].heapBytes);
  print("held lease, member", "bytes", median(perMember) / held.length);
  await Promise.all(held.map((lease) => lease.release()));
}

await report(1, 3_000);
await report(operationsInFlight, 20_000);
await bytesPerLease(20_000);
await leases.close();
await cluster.stop();
