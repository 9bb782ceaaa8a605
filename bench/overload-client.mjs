// One client of the overloaded cluster, in a process of its own: `holder` keeps leases that renew themselves,
// `looper` acquires and releases as fast as it can. Each answer to its parent reports what has happened since
// the last one.
import { open } from "leasehold";

const { role, urls, count } = JSON.parse(process.argv[2]);
// Register before opening: the parent may already have gone.
process.on("disconnect", () => process.exit());
const leases = await open(...urls, { name: role });
const seen = { lost: 0, leastMs: Infinity, done: 0, failures: {} };
const failed = (error) => (seen.failures[error.code] = (seen.failures[error.code] ?? 0) + 1);

async function hold() {
  const held = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const name = `held/${next++}`;
      for (;;) {
        try {
          held.push(await leases.acquire(name));
          break;
        } catch (error) {
          failed(error);
        }
      }
    }
  };
  await Promise.all(Array.from({ length: 256 }, worker));
  const gone = new Set();
  setInterval(() => {
    for (const lease of held) {
      if (gone.has(lease)) continue;
      const leftMs = lease.remaining();
      seen.leastMs = Math.min(seen.leastMs, leftMs);
      if (leftMs > 0) continue;
      gone.add(lease);
      seen.lost += 1;
    }
  }, 2_000);
}

async function loop(index) {
  for (let turn = 0; ; turn += 1) {
    try {
      const lease = await leases.acquire(`loop/${index}/${turn % 100}`);
      await lease.release();
      seen.done += 1;
    } catch (error) {
      failed(error);
    }
  }
}

process.on("message", () => {
  process.send({ ...seen, leastMs: Math.round(seen.leastMs) });
  Object.assign(seen, { leastMs: Infinity, done: 0, failures: {} });
});
if (role === "holder") await hold();
else for (let index = 0; index < count; index += 1) void loop(index);
process.send("ready");
