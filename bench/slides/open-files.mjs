// A chart of the Flease talk: the number of files that can be open at once, each under a lease that must be
// renewed before its timeout. One client of three members holds leases that renew themselves; a search finds
// the greatest number without a lost lease. For comparison ZooKeeper, where renewing a session keeps all its
// nodes.
import { setTimeout as sleep } from "node:timers/promises";
import { startCluster } from "../cluster.mjs";
import { rowOf } from "../results.mjs";
import { ask, startChild, stopAll } from "./child.mjs";
import { startZooKeeper } from "./zookeeper.mjs";

const timeoutsSeconds = [2, 5, 10];
const derivedSeconds = [2, 5, 10, 20, 30];
const settings = { ttlMax: "10s", maxClockSkew: "20ms", rpcTimeout: "450ms" };
/** The first number tried, as a share of the number that the rate of renewals suggests. */
const firstShare = 0.8;
/**
 * The upper bound of the search. The chart shows how the number grows, and the machine's memory is limited.
 */
const mostLeases = 1_000_000;
const growth = 1.4;
/** A lease is renewed when a third of its ttl is over. */
const renewalsInTtl = 3;
const heldMs = (ttlSeconds) => Math.max(3_000, 1_500 * ttlSeconds);
/** The time limit of all searches together; the last try may exceed it. */
const searchMs = 80_000;
const zooKeeperNodes = 20_000;

/**
 * Starts one client with leases, in a process of its own. Each try uses a new one, so that nothing is left of
 * the try before.
 */
const startHolder = (urls) => startChild("open-files-holder.mjs", { urls }, ["--max-old-space-size=8192"]);

/** Whether `count` leases are kept for some time without a loss. */
async function keeps(urls, ttlSeconds, count, progress) {
  const holder = await startHolder(urls);
  const { held, failure } = await ask(holder, { order: "take", count, ttlMs: 1_000 * ttlSeconds });
  if (held === 0) throw new Error(`no lease of ${ttlSeconds} s was to be had: ${failure}`);
  if (held === count) await sleep(heldMs(ttlSeconds));
  const { lost } = await ask(holder, { order: "lost" });
  await stopAll([holder]);
  progress(
    `${count} leases of ${ttlSeconds} s: ${lost} lost${held === count ? "" : `, ${count - held} not taken`}`,
  );
  const isKept = held === count && lost === 0;
  // Let members forget the leases of this client, so that they do not affect the next try.
  if (!isKept) await sleep(1_000 * ttlSeconds);
  return isKept;
}

/** The greatest number without a loss and the least with one, no more than `growth` apart. */
async function search(urls, ttlSeconds, guess, deadline, progress) {
  let [kept, lost] = [0, Infinity];
  let count = Math.min(mostLeases, Math.round(guess));
  while (lost > kept * growth * 1.05 && kept < mostLeases && performance.now() < deadline) {
    if (await keeps(urls, ttlSeconds, count, progress)) kept = count;
    else lost = count;
    const up = Math.min(mostLeases, kept * growth);
    count = Math.round(kept === 0 ? lost / 2 : lost === Infinity ? up : Math.sqrt(kept * lost));
  }
  return { kept, lost };
}

export async function measureOpenFiles(room, progress) {
  const cluster = await startCluster(settings);
  const holder = await startHolder(cluster.urls);
  const { perSecond } = await ask(holder, { order: "renewals" });
  await stopAll([holder]);
  const rows = [rowOf("renewals a second", "leasehold", "renewals/s", perSecond)];
  const [{ median: capacity }] = rows;
  const unit = "leases";
  for (const ttlSeconds of derivedSeconds) {
    const byCapacity = perSecond.map((rate) => (rate * ttlSeconds) / renewalsInTtl);
    rows.push(rowOf("leases kept alive, derived", "leasehold", unit, byCapacity, { ttlSeconds }));
  }
  const deadline = performance.now() + searchMs;
  let share = firstShare;
  for (const ttlSeconds of timeoutsSeconds) {
    const guess = ((capacity * ttlSeconds) / renewalsInTtl) * share;
    const { kept, lost } = await search(cluster.urls, ttlSeconds, guess, deadline, progress);
    if (kept === 0) continue;
    share = (kept * renewalsInTtl) / (capacity * ttlSeconds);
    const row = rowOf("leases kept alive", "leasehold", unit, [kept], { ttlSeconds });
    // The greatest number lies between these two, if a number with losses was found.
    rows.push({ ...row, max: Number.isFinite(lost) ? lost : kept });
  }
  await cluster.stop();
  return rows;
}

/** Sessions of all timeouts side by side, each with as many nodes. Only a session's pings keep its nodes. */
export async function measureZooKeeperSessions(room, progress) {
  const { ZooKeeperNodes } = await import("../systems/zookeeper-nodes.mjs");
  const servers = await startZooKeeper(room);
  const sessions = await Promise.all(
    timeoutsSeconds.map(async (ttlSeconds) => {
      const client = await ZooKeeperNodes.connect(servers.ports, 1_000 * ttlSeconds);
      await client.createMany(`file/${ttlSeconds}`, zooKeeperNodes);
      progress(`ZooKeeper: ${zooKeeperNodes} nodes of a session of ${ttlSeconds} s`);
      return { client, ttlSeconds };
    }),
  );
  await sleep(heldMs(timeoutsSeconds.at(-1)));
  const rows = [];
  for (const { client, ttlSeconds } of sessions) {
    // All nodes of a session expire together.
    if (!(await client.has(`file/${ttlSeconds}/0`))) continue;
    const more = { ttlSeconds, tried: zooKeeperNodes };
    rows.push(rowOf("leases kept alive", "zookeeper", "leases", [zooKeeperNodes], more));
  }
  for (const { client } of sessions) client.close();
  servers.stop();
  return rows;
}
