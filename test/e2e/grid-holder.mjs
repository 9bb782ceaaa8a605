/**
 * A participant in a process of its own: `node grid-holder.mjs <dist> <ground> <name> <ttlMax> <folder>…`. It
 * takes the resource `r`, keeps it, and prints one JSON line for each event, with the time on the steady
 * clock that all processes of a machine share.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, ground, name, ttlMax, ...folders] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const [{ openGrid }, { openFarm }, { openDirectoryStore }, { LeaseManager }, { realWorld, incarnation }] =
  await Promise.all(
    [
      "flease/stores/open.js",
      "delta/provider/open.js",
      "stores/directory/open.js",
      "lease/manager/lease-manager.js",
      "runtime/world.js",
    ].map(load),
  );

const nowMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const say = (what, more = {}) =>
  process.stdout.write(`${JSON.stringify({ what, name, atMs: nowMs(), ...more })}\n`);

const world = realWorld();
const holder = `${name}.${incarnation()}`;
const stores = await Promise.all(
  folders.map((folder) => openDirectoryStore(pathToFileURL(folder), { writer: holder })),
);
const provider =
  ground === "grid"
    ? await openGrid(stores, world, {
        name,
        incarnation,
        maxClockSkewMs: 50,
        ttlMaxMs: Number(ttlMax),
        delayMs: 200,
      })
    : await openFarm(stores, world, { holder, leaseMsMax: Number(ttlMax), delayMs: 200 });
const leases = new LeaseManager(provider, world);
const alive = setInterval(() => {}, 1_000);
say("opened");

/** Rounds of acquiring and releasing, to measure their times. */
const rounds = Number(process.env["ROUNDS"] ?? 0);
const took = { take: [], renew: [], release: [] };
const timed = async (kind, body) => {
  const beganMs = nowMs();
  const value = await body();
  took[kind].push(nowMs() - beganMs);
  return value;
};
for (let round = 0; round < rounds; round += 1) {
  const lease = await timed("take", () => leases.acquire(`round-${round}`, { autoRenew: false }));
  await timed("renew", () => lease.renew());
  await timed("release", () => lease.release());
}
if (rounds > 0) {
  const median = (list) => list.toSorted((one, other) => one - other)[Math.floor(list.length / 2)];
  say("rounds", { takeMs: median(took.take), renewMs: median(took.renew), releaseMs: median(took.release) });
}

process.stdin.once("data", async () => {
  say("wants");
  const lease = await leases.acquire("r", { wait: "1m" });
  say("took", { token: lease.token.toString(), remainingMs: lease.remaining() });
  lease.signal.addEventListener("abort", () => say("lost"));
  process.stdin.once("data", async () => {
    await lease.release();
    say("released");
    await leases.close();
    clearInterval(alive);
    process.stdin.destroy();
  });
});
