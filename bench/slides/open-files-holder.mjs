// Acquires leases that renew themselves and reports how many were lost, or measures how many it can renew in
// a second.
import { open } from "../../packages/leasehold/dist/index.js";

const { urls } = JSON.parse(process.argv[2]);
// Register before opening: the parent may already have gone.
process.on("disconnect", () => process.exit());
const leases = await open(...urls, { name: "holder" });
const inFlight = 512;
const held = [];
let failure;

async function each(count, operation) {
  let next = 0;
  const worker = async () => {
    while (next < count) await operation(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/** The time limit for acquiring all leases. If it is exceeded, there are too many. */
const takeMs = 10_000;

async function take(count, ttlMs) {
  const deadline = performance.now() + takeMs;
  await each(count, async (index) => {
    if (performance.now() > deadline) return;
    try {
      held.push(await leases.acquire(`file/${process.pid}/${index}`, { ttl: ttlMs }));
    } catch (error) {
      failure = error.message;
    }
  });
  return { held: held.length, failure };
}

async function renewals() {
  const [count, rounds] = [20_000, 5];
  await take(count, 10_000);
  const perSecond = [];
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    const began = performance.now();
    await each(count, (index) => held[index].renew());
    if (round >= 0) perSecond.push(count / ((performance.now() - began) / 1_000));
  }
  return { perSecond };
}

process.on("message", async ({ order, count, ttlMs }) => {
  if (order === "take") process.send(await take(count, ttlMs));
  if (order === "renewals") process.send(await renewals());
  if (order === "lost") process.send({ lost: held.filter((lease) => lease.remaining() <= 0).length });
});
process.send("ready");
