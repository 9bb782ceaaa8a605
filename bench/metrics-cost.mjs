// The cost of metrics on the path of an acquisition among peers: processor time of three members and a client
// in one process, alternately with and without metrics of all of them. Processor time is independent of other
// processes.
//   npm run bench -- metrics
import { createServer } from "node:net";
import { open, startMember } from "leasehold";
import { createMetrics } from "leasehold/metrics";

/** Short alternating blocks, so that other work on the machine affects both alike. */
const pairs = 100;
const operations = 3_000;
const inFlight = 64;

/** All are kept open until all ports are known, so that no port is found twice. */
const servers = Array.from({ length: 3 }, () => createServer().listen(0, "127.0.0.1"));
await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
const ports = servers.map((server) => server.address().port);
await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
const members = Object.fromEntries(ports.map((port, at) => [`m${at}`, `127.0.0.1:${port}`]));
const settings = { members, ttlMax: "10s", maxClockSkew: "100ms", rpcTimeout: "2s" };
const started = await Promise.all(Object.keys(members).map((id) => startMember({ ...settings, id })));
const leases = await open(...Object.values(members).map((address) => `flease://${address}`), {
  timeout: "30s",
});
await Promise.all(started.map((member) => member.ready()));

let next = 0;
/** Microseconds of processor time for one acquisition with its release. */
async function work() {
  const begun = process.cpuUsage();
  const end = next + operations;
  const one = async () => {
    while (next < end) await (await leases.acquire(`r${(next += 1)}`, { wait: "30s" })).release();
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / operations;
}

const metrics = createMetrics();
const { address, close } = await metrics.serve("127.0.0.1:0");

async function workObserved() {
  const stops = [
    metrics.observe(leases),
    metrics.observeProcess(),
    ...started.map((member) => metrics.observeMember(member)),
  ];
  const took = await work();
  for (const stop of stops) stop();
  return took;
}

/** Processor time of one scrape, as Prometheus makes it every 15 s. */
async function scrape() {
  const begun = process.cpuUsage();
  await (await fetch(`http://${address}/metrics`)).text();
  const { user, system } = process.cpuUsage(begun);
  return user + system;
}

const medianOf = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)];

for (let warm = 0; warm < 10; warm += 1) {
  await work();
  await workObserved();
}
const all = { without: [], observed: [], ratios: [] };
for (let pair = 0; pair < pairs; pair += 1) {
  // Alternates which of a pair comes first.
  const [without, observed] =
    pair % 2 === 0
      ? [await work(), await workObserved()]
      : await workObserved().then(async (first) => [await work(), first]);
  all.without.push(without);
  all.observed.push(observed);
  all.ratios.push(observed / without);
}
const percent = (ratio) => `${((ratio - 1) * 100).toFixed(1)} %`;
const spread = all.ratios.toSorted((a, b) => a - b);
console.log(
  `${medianOf(all.without).toFixed(1)} µs without, ${medianOf(all.observed).toFixed(1)} µs with metrics (medians)`,
);
console.log(
  `median of ${pairs} pairs: ${percent(medianOf(all.ratios))} of processor time; half of them between ` +
    `${percent(spread[Math.floor(pairs / 4)])} and ${percent(spread[Math.floor((pairs * 3) / 4)])}`,
);
const scrapes = [];
for (let count = 0; count < 20; count += 1) scrapes.push(await scrape());
console.log(
  `one scrape: ${(medianOf(scrapes) / 1_000).toFixed(1)} ms, ${(medianOf(scrapes) / 150_000).toFixed(2)} % of a core every 15 s`,
);
await close();
await leases.close();
await Promise.all(started.map((member) => member.close()));
