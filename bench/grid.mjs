/**
 * The grid and conditional Δ-leases on three directories of this machine, each participant a process of its
 * own: `node bench/grid.mjs [--ttl 2000] [--kills 5]`. Prints medians: the times to acquire, renew and
 * release a free lease, and the time from the kill of a holder until another participant has the lease, for
 * one that was already waiting and for one that comes after the lease has expired.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { ttl: { type: "string", default: "2000" }, kills: { type: "string", default: "5" } },
});
const ttlMs = Number(values.ttl);
const dist =
  process.env["LEASEHOLD_DIST"] ?? fileURLToPath(new URL("../packages/leasehold/dist", import.meta.url));
const holderPath = fileURLToPath(new URL("../test/e2e/grid-holder.mjs", import.meta.url));
const nowMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function start(ground, name, folders, rounds = 0) {
  const words = [holderPath, dist, ground, name, String(ttlMs), ...folders];
  const env = { ...process.env, ROUNDS: String(rounds) };
  const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"], env });
  const said = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) said.push(JSON.parse(line));
  });
  const heard = async (what) => {
    for (;;) {
      const found = said.find((one) => one.what === what);
      if (found !== undefined) return found;
      await sleep(2);
    }
  };
  return { child, heard, next: () => child.stdin.write("\n") };
}

const median = (list) => list.toSorted((one, other) => one - other)[Math.floor(list.length / 2)];

async function kills(ground, folders, waits) {
  const times = [];
  for (let kill = 0; kill < Number(values.kills); kill += 1) {
    const [holder, other] = [start(ground, "holder", folders), start(ground, "other", folders)];
    await Promise.all([holder.heard("opened"), other.heard("opened")]);
    holder.next();
    await holder.heard("took");
    if (waits) {
      other.next();
      await other.heard("wants");
      await sleep(ttlMs / 2);
    }
    holder.child.kill("SIGKILL");
    let sinceMs = nowMs();
    if (!waits) {
      // The lease has expired, including ε, so the rules alone delay the next holder.
      await sleep(ttlMs + 200);
      sinceMs = nowMs();
      other.next();
    }
    times.push((await other.heard("took")).atMs - sinceMs);
    other.child.kill("SIGKILL");
    await sleep(ttlMs + 200);
  }
  return median(times);
}

const rows = [];
for (const ground of ["grid", "delta"]) {
  const root = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  const folders = ["a", "b", "c"].map((name) => join(root, name));
  for (const folder of folders) mkdirSync(folder);
  const one = start(ground, "one", folders, 100);
  const { takeMs, renewMs, releaseMs } = await one.heard("rounds");
  one.child.kill("SIGKILL");
  const waitedMs = await kills(ground, folders, true);
  const comesMs = await kills(ground, folders, false);
  rmSync(root, { recursive: true, force: true });
  rows.push({
    ground,
    takeMs,
    renewMs,
    releaseMs,
    takeOverWaitedMs: waitedMs,
    takeOverComesLaterMs: comesMs,
  });
}
const rounded = rows.map((row) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === "number" ? Number(value.toFixed(1)) : value,
    ]),
  ),
);
console.table(rounded);
