// Checks that observers cost no lease: a hundred thousand leases are held and renew themselves, while an
// observer in a process of its own lists all of them, 32 calls at a time, and watches them. Prints one JSON
// object a line, and exits with 1 if a lease is lost. Arguments: the number of leases (100000), the seconds
// (30), the ttl of the short leases (4000 ms).
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";
import { startCluster } from "./cluster.mjs";

const heldCount = Number(process.argv[2] ?? 100_000);
const stormMs = 1_000 * Number(process.argv[3] ?? 30);
const settings = { ttlMax: "60s", maxClockSkew: "200ms", rpcTimeout: "500ms" };
const shortTtlMs = Number(process.argv[4] ?? 4_000);
const shortCount = 100;
const listsAtOnce = 32;
const watchesAtOnce = 8;

const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));
const progress = (text) => process.stderr.write(`${text}\n`);
const quantile = (values, q) => values[Math.floor((values.length - 1) * q)];

/** The observer's process: sends requests until its parent stops it, and reports what it received. */
async function storm(urls) {
  const leases = await open(...urls, { name: "observer", role: "observer" });
  const stop = new AbortController();
  const did = { lists: 0, failed: 0, listed: 0, changes: 0 };
  const list = async () => {
    while (!stop.signal.aborted) {
      try {
        did.listed = (await leases.list("", { timeout: "30s" })).length;
        did.lists += 1;
      } catch {
        did.failed += 1;
      }
    }
  };
  const watch = async (prefix) => {
    try {
      for await (const _ of leases.watch(prefix, { signal: stop.signal })) did.changes += 1;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  const all = [
    ...Array.from({ length: listsAtOnce }, list),
    ...Array.from({ length: watchesAtOnce }, (_, index) => watch(`held/${index}`)),
  ];
  process.send("storming");
  await once(process, "message");
  stop.abort();
  process.send(did);
  process.disconnect();
  await Promise.race([Promise.all(all), sleep(1_000)]);
  process.exit();
}

async function forEach(names, operation) {
  let next = 0;
  const worker = async () => {
    while (next < names.length) await operation(names[next++]);
  };
  await Promise.all(Array.from({ length: 256 }, worker));
}

/** The holder's process: holds many leases, which renew themselves. */
async function hold(urls, count) {
  const leases = await open(...urls, { name: "holder" });
  const held = [];
  await forEach(
    Array.from({ length: count }, (_, index) => `held/${index}`),
    async (name) => held.push(await leases.acquire(name)),
  );
  process.on("message", () => process.send(held.filter((lease) => lease.remaining() === 0).length));
  process.on("disconnect", () => process.exit());
  process.send("holding");
}

async function main() {
  progress("starting three members; their recovery wait takes a minute");
  const cluster = await startCluster(settings);
  const self = fileURLToPath(import.meta.url);
  const holder = fork(self, ["hold", JSON.stringify(cluster.urls), String(heldCount)]);
  await once(holder, "message");
  const other = await open(...cluster.urls, { name: "other" });
  const short = [];
  for (let index = 0; index < shortCount; index += 1)
    short.push(await other.acquire(`short/${index}`, { ttl: shortTtlMs }));
  const lost = async () => {
    holder.send("lost?");
    const [ofMany] = await once(holder, "message");
    return ofMany + short.filter((lease) => lease.remaining() === 0).length;
  };

  const phase = async (title, forMs) => {
    const timesMs = [];
    let leastMs = Infinity;
    let refused = 0;
    const untilMs = performance.now() + forMs;
    while (performance.now() < untilMs) {
      const fromMs = performance.now();
      try {
        const lease = await other.acquire("asked", { wait: "5s" });
        await lease.release();
      } catch {
        refused += 1;
      }
      timesMs.push(performance.now() - fromMs);
      for (const each of short) leastMs = Math.min(leastMs, each.remaining());
      await sleep(10);
    }
    timesMs.sort((a, b) => a - b);
    for (const q of [0.5, 0.99, 1])
      print(`${title}: acquired in, quantile ${q}`, "ms", quantile(timesMs, q), { refused });
    print(`${title}: least that was left of leases of ${shortTtlMs} ms`, "ms", leastMs);
    print(`${title}: leases lost`, "leases", await lost(), { held: heldCount + short.length });
  };

  await phase("before", 5_000);
  const before = await cluster.collected();
  const child = fork(self, ["storm", JSON.stringify(cluster.urls)]);
  await once(child, "message");
  await phase(`${listsAtOnce} lists at a time`, stormMs);
  const during = await cluster.collected();
  child.send("enough");
  const [did] = await once(child, "message");
  print("lists that ended", "lists", did.lists, did);
  during.forEach((usage, index) => {
    const busy = (usage.cpuUs - before[index].cpuUs) / 1_000 / stormMs;
    print("a member's growth of the heap", "MB", (usage.heapBytes - before[index].heapBytes) / 1e6, { busy });
  });
  const lostAtTheEnd = await lost();
  holder.disconnect();
  await other.close();
  await cluster.stop();
  process.exitCode = lostAtTheEnd === 0 ? 0 : 1;
}

if (process.argv[2] === "storm") await storm(JSON.parse(process.argv[3]));
else if (process.argv[2] === "hold") await hold(JSON.parse(process.argv[3]), Number(process.argv[4]));
else await main();
