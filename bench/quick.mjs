// A first measurement of the hot paths over real sockets: three members in processes of their own, one client here.
// An argument says how they prove who they are: `plain` (the default), `certificates` or `key`.
// Each round measures the bare exchange (`bare/`) beside it, the least that an acquisition can cost here.
// Prints one JSON object a line: figure, unit, value. Rates and times are medians of several rounds.
import { open } from "leasehold";
import { startExchange } from "./bare/exchange.mjs";
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
const bare = await startExchange();

/** Runs `operation` for each name, `width` at a time; returns operations a second, CPU over all processes, and each one's time. */
async function measure({ usage }, names, width, operation) {
  const membersBefore = await usage();
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
  const members = (await usage()).map(({ cpuUs }, index) => cpuUs - membersBefore[index].cpuUs);
  return {
    perSecond: names.length / seconds,
    cpuUs: (own + members.reduce((sum, used) => sum + used, 0)) / names.length,
    clientCpuUs: own / names.length,
    timesMs,
  };
}

async function oneRound(width, names) {
  const [held, bareHeld] = [new Map(), []];
  const bareAcquire = async (name) => bareHeld.push(await bare.acquire(name));
  const measured = {
    "bare acquire": await measure(bare, names, width, bareAcquire),
    acquire: await measure(cluster, names, width, async (name) => held.set(name, await leases.acquire(name))),
    renew: await measure(cluster, names, width, (name) => held.get(name).renew()),
    release: await measure(cluster, names, width, (name) => held.get(name).release()),
  };
  bareHeld.forEach(bare.release);
  return measured;
}

async function report(width, count) {
  const measured = [];
  // Those of the first round warm up.
  for (let round = -1; round < rounds; round += 1) {
    const names = Array.from({ length: count }, (_, index) => `bench/${width}/${round}/${index}`);
    const each = await oneRound(width, names);
    if (round >= 0) measured.push(each);
    const [rate, bareRate] = [each.acquire, each["bare acquire"]].map(({ perSecond }) =>
      Math.round(perSecond),
    );
    progress(`${width} in flight: ${rate} acquisitions a second, the bare exchange ${bareRate}`);
  }
  const more = { inFlight: width };
  for (const name of Object.keys(measured[0])) {
    const results = measured.map((each) => each[name]);
    const times = results.flatMap((each) => each.timesMs);
    print(`${name} rate`, "operations/s", median(results.map((each) => each.perSecond)), more);
    print(`${name} CPU, all processes`, "µs/operation", median(results.map((each) => each.cpuUs)), more);
    print(`${name} CPU, client`, "µs/operation", median(results.map((each) => each.clientCpuUs)), more);
    print(`${name} time, median`, "µs", quantile(times, 0.5) * 1_000, more);
    print(`${name} time, 99th percentile`, "µs", quantile(times, 0.99) * 1_000, more);
  }
  // Of the same round, so that what else the machine did meanwhile is in both.
  const ratio = (figure, of) =>
    print(
      `acquire ${figure} ÷ bare`,
      "",
      median(measured.map((each) => of(each.acquire) / of(each["bare acquire"]))),
      more,
    );
  ratio("rate", (each) => each.perSecond);
  ratio("CPU", (each) => each.cpuUs);
  ratio("time, median", (each) => quantile(each.timesMs, 0.5));
  ratio("time, 99th percentile", (each) => quantile(each.timesMs, 0.99));
}

async function bytesPerLease(count) {
  const heap = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const names = Array.from({ length: count }, (_, index) => `bench/held/${index}`);
  const [clientBefore, membersBefore] = [heap(), await cluster.collected()];
  const held = await Promise.all(names.map((name) => leases.acquire(name)));
  const [clientAfter, membersAfter] = [heap(), await cluster.collected()];
  print("held lease, client", "bytes", (clientAfter - clientBefore) / held.length);
  const perMember = membersAfter.map((usage, index) => usage.heapBytes - membersBefore[index].heapBytes);
  print("held lease, member", "bytes", median(perMember) / held.length);
  await Promise.all(held.map((lease) => lease.release()));
}

await report(1, 3_000);
await report(operationsInFlight, 20_000);
await bytesPerLease(20_000);
await leases.close();
await bare.stop();
await cluster.stop();
