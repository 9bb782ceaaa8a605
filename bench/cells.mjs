// Thirty members in processes of their own, with cells of three: how evenly resources are spread over them,
// and the effect of losing one member and three members. Prints one JSON object a line. Needs some 2 GB of
// memory. With the argument `cost` it instead measures the cost of an acquisition with more members
// (`cells-cost.mjs`).
import { setTimeout as sleep } from "node:timers/promises";
import { clusterStatus, open } from "leasehold";
import { measureCost } from "./cells-cost.mjs";
import { Cells } from "../packages/leasehold/dist/flease/protocol/cells.js";
import { startCluster } from "./cluster.mjs";

if (process.argv[2] === "cost") {
  await measureCost(process.argv.slice(3).map(Number));
  process.exit();
}

const memberCount = 30;
const cellSize = 3;
const resourceCount = 30_000;
const heldCount = 300;
const lostFirst = ["m03"];
const lostLater = ["m14", "m25"];
const ttlMs = 20_000;
const settings = { ttlMax: ttlMs, maxClockSkew: "50ms", rpcTimeout: "500ms", cellSize };
const ids = Array.from({ length: memberCount }, (_, index) => `m${String(index).padStart(2, "0")}`);

const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));
const progress = (text) => process.stderr.write(`${text}\n`);
const failures = [];
const check = (holds, what) => {
  if (!holds) failures.push(what);
};

progress(`starting ${memberCount} members`);
const cluster = await startCluster(settings, undefined, ids);
const leases = await open(...cluster.urls, { name: "bench" });
const cells = new Cells(ids, cellSize);
const standsWithout = (resource, lost) => {
  const { members, majority } = cells.of(resource);
  return members.filter((index) => !lost.includes(ids[index])).length >= majority;
};

/** Runs an operation for each name, about a hundred at a time. */
async function forEach(names, operation) {
  let next = 0;
  const worker = async () => {
    while (next < names.length) await operation(names[next++]);
  };
  await Promise.all(Array.from({ length: 200 }, worker));
}

const names = (kind, count) => Array.from({ length: count }, (_, index) => `${kind}/${index}`);

async function spread() {
  const held = [];
  await forEach(names("spread", resourceCount), async (name) => held.push(await leases.acquire(name)));
  const loads = (await clusterStatus(...cluster.urls)).map(({ status }) => status.resources);
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
  const more = { members: memberCount, cellSize, resources: resourceCount };
  print("resources on a member, fewest", "of the mean", Math.min(...loads) / mean, more);
  print("resources on a member, mean", "resources", mean, more);
  print("resources on a member, most", "of the mean", Math.max(...loads) / mean, more);
  const listed = await leases.list("spread/", { timeout: "20s" });
  check(listed.length === resourceCount, `list says ${listed.length} of ${resourceCount} resources`);
  check(
    listed.every((hint) => hint.confirmed),
    "list: a lease is not confirmed",
  );
  const hint = await leases.holder("spread/7");
  check(hint.state === "held" && hint.holder === leases.self, `holder says ${JSON.stringify(hint.state)}`);
  await forEach(held, (lease) => lease.release());
}

/**
 * The share of some thousand resources that cannot be acquired. Checks for each that its cell predicts the
 * result.
 */
async function reach(kind, lost) {
  let failed = 0;
  await forEach(names(kind, 3_000), async (name) => {
    const stands = standsWithout(name, lost);
    try {
      const lease = await leases.tryAcquire(name, { ttl: ttlMs });
      check(lease !== undefined && stands, `${name} was acquired without a majority of its cell`);
      await lease?.release();
    } catch (error) {
      failed += 1;
      check(error.code === "NO_QUORUM" && !stands, `${name}: ${error.message}`);
    }
  });
  return failed / 3_000;
}

/** Leases held throughout the run; the remaining time of each is sampled every few milliseconds. */
class Watched {
  #held = [];
  #stop = false;
  #looking;

  async begin() {
    await forEach(names("held", heldCount), async (name) => {
      this.#held.push({ name, lease: await leases.acquire(name), least: Infinity });
    });
    this.#looking = this.#look();
  }

  async #look() {
    while (!this.#stop) {
      for (const each of this.#held) each.least = Math.min(each.least, each.lease.remaining());
      await sleep(5);
    }
  }

  /** Returns the longest time without a renewal, among leases whose cell still has a majority. */
  async end(lost) {
    this.#stop = true;
    await this.#looking;
    const standing = this.#held.filter(({ name }) => standsWithout(name, lost));
    const least = Math.min(...standing.map((each) => each.least));
    check(least > 0, "a lease was lost although its cell stands");
    const gone = this.#held.filter(({ lease }) => lease.remaining() === 0).length;
    check(gone === this.#held.length - standing.length, `${gone} leases were lost`);
    for (const { lease } of this.#held) await lease.release();
    return { held: this.#held.length, gone, longestGapMs: ttlMs - least };
  }
}

await spread();
const watched = new Watched();
await watched.begin();
await sleep(ttlMs / 2);
cluster.kill(...lostFirst);
print("one member killed: resources that cannot be acquired", "of all", await reach("one", lostFirst));
await sleep(ttlMs / 2);
cluster.kill(...lostLater);
const lost = [...lostFirst, ...lostLater];
const counted = names("counted", 30_000).filter((name) => !standsWithout(name, lost)).length / 30_000;
print("three members killed: resources that cannot be acquired", "of all", await reach("three", lost), {
  predicted: 82 / 4_060,
  ofThirtyThousandByTheirCells: counted,
});
await sleep(1.2 * ttlMs);
const { held, gone, longestGapMs } = await watched.end(lost);
print("leases held meanwhile: lost with their cell", "leases", gone, { held });
print("leases held meanwhile, others: longest time between two renewals", "ms", longestGapMs, {
  ttlMs,
  renewedEveryMs: ttlMs / 3,
});
await leases.close();
await cluster.stop();
for (const failure of failures.slice(0, 10)) progress(`WRONG ${failure}`);
process.exitCode = failures.length === 0 ? 0 : 1;
