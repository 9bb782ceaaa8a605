// What `leasehold run x -- true` takes beside an empty `node -e 0`: medians of rounds in which all are run in turn, so that
// what else the machine does counts for each. A third process, the guard, is started beside the acquisition.
//   node bench/run-cost.mjs [rounds]
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../packages/leasehold/bin/leasehold.js", import.meta.url));
const rounds = Number(process.argv[2] ?? 15);
const firstPort = 7_930;

const folder = mkdtempSync(join(tmpdir(), "leasehold-cost-"));
const stores = ["a", "b", "c"].map((name) => join(folder, name));
for (const store of stores) mkdirSync(store);
const members = ["a", "b", "c"].map((id, index) => [id, `127.0.0.1:${firstPort + index}`]);
const settings = [
  ...members.flatMap(([id, address]) => ["--member", `${id}=${address}`]),
  "--ttl-max",
  "5s",
  "--max-clock-skew",
  "50ms",
];
const peers = members.map(([id]) =>
  spawn(process.execPath, [command, "peer", "--id", id, ...settings], { stdio: "ignore" }),
);

const run = (endpoints) => [command, "run", "--endpoints", endpoints, "cost", "--", "true"];
const cases = {
  "node -e 0": ["-e", "0"],
  "run at a cluster of three": run(members[0][1]),
  "run on three directories": run(`delta+file://${stores.join(",")}`),
  "run in memory": run("memory:cost"),
  "leasehold --version": [command, "--version"],
};

function timed(words) {
  const begunMs = performance.now();
  const { status } = spawnSync(process.execPath, words, { stdio: "ignore" });
  if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}`);
  return performance.now() - begunMs;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

try {
  // The members wait out their recovery.
  await sleep(8_000);
  const times = new Map(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, words] of Object.entries(cases)) times.get(name).push(timed(words));
  const empty = times.get("node -e 0");
  for (const [name, all] of times) {
    const ratio = (median(all) / median(empty)).toFixed(2);
    const least = Math.min(...all).toFixed(0);
    process.stdout.write(
      `${name.padEnd(26)} median ${median(all).toFixed(0).padStart(5)} ms, ${ratio} times; least ${least} ms\n`,
    );
  }
} finally {
  for (const peer of peers) peer.kill();
  rmSync(folder, { recursive: true, force: true });
}
