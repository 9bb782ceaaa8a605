/**
 * A program of a given release that acquires leases: one that it keeps, and shared ones that it acquires in
 * turns with others. While it holds a shared lease, it creates a file that must not exist yet, and checks
 * that tokens increase.
 *
 * node holder.mjs DIST ADDRESSES FOLDER NAME TTL-MS
 */
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [dist, address, folder, name, ttl] = process.argv.slice(2);
const { open } = await import(`${dist}/index.js`);
const ttlMs = Number(ttl);
const shared = ["one", "two"];
const problems = [];
let tenures = 0;
const over = new AbortController();

const leases = await open(...address.split(" "), { timeout: "30s" });
const kept = await leases.acquire(`kept/${name}`, { ttl: ttlMs, wait: "1m" });
kept.signal.addEventListener("abort", () => {
  if (!over.signal.aborted) problems.push(`the lease kept/${name} was lost: ${kept.signal.reason}`);
});

async function takeTurns(resource) {
  const [place, tokens] = [join(folder, `${resource}.held`), join(folder, `${resource}.token`)];
  while (!over.signal.aborted) {
    let lease;
    try {
      lease = await leases.acquire(`shared/${resource}`, { ttl: ttlMs, wait: "5s" });
    } catch {
      await sleep(50);
      continue;
    }
    try {
      closeSync(openSync(place, "wx"));
    } catch {
      // If a holder lost its lease while it held the file, the file is left over; the test fails in this case
      // anyway.
      problems.push(`two hold ${resource}`);
    }
    const before = BigInt(readFileSync(tokens, { encoding: "utf8", flag: "a+" }) || "0");
    if (BigInt(lease.token) <= before)
      problems.push(`the token of ${resource} is ${lease.token} after ${before}`);
    writeFileSync(tokens, String(lease.token));
    await sleep(10 + 20 * Math.random());
    if (lease.signal.aborted) problems.push(`${resource} was lost: ${lease.signal.reason}`);
    rmSync(place, { force: true });
    tenures += 1;
    process.stdout.write("turn\n");
    await lease.release();
    await sleep(5);
  }
}

process.stdout.write("holds\n");
process.on("SIGTERM", () => over.abort());
await Promise.all(shared.map(takeTurns));
await kept.release();
await leases.close();
process.stdout.write(`${JSON.stringify({ tenures, problems })}\n`);
