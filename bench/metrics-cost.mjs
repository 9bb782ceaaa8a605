// What metrics cost the way of an acquisition among peers: processor time of three members and a client in one process,
// in turn with and without metrics of all of them. Processor time, since other processes cannot take that away.
//   npm run bench -- metrics
import { createServer } from "node:net";
import { open, startMember } from "leasehold";
import { createMetrics } from "leasehold/metrics";

const rounds = 7;
const operations = 60_000;
const inFlight = 64;

/** Held until all are known, so that none is found twice. */
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

async function workObserved() {
  const metrics = createMetrics();
  const stops = [
    metrics.observe(leases),
    metrics.observeProcess(),
    ...started.map((member) => metrics.observeMember(member)),
  ];
  const { address, close } = await metrics.serve("127.0.0.1:0");
  // As often as Prometheus usually does.
  const scraping = setInterval(() => void fetch(`http://${address}/metrics`).then((a) => a.text()), 15_000);
  const took = await work();
  clearInterval(scraping);
  await close();
  for (const stop of stops) stop();
  return took;
}

await work();
await workObserved();
const ratios = [];
for (let round = 0; round < rounds; round += 1) {
  // The first of a pair is now this, now that.
  const [without, observed] =
    round % 2 === 0
      ? [await work(), await workObserved()]
      : await workObserved().then(async (first) => [await work(), first]);
  ratios.push(observed / without);
  console.log(
    `${without.toFixed(1)} µs without, ${observed.toFixed(1)} µs with metrics: ${((observed / without - 1) * 100).toFixed(1)} %`,
  );
}
const median = ratios.toSorted((a, b) => a - b)[Math.floor(rounds / 2)];
console.log(`median of ${rounds} pairs: ${((median - 1) * 100).toFixed(1)} % of processor time`);
await leases.close();
await Promise.all(started.map((member) => member.close()));
