// The cost of `leasehold run x -- true` compared with an empty `node -e 0`: medians of rounds in which all
// are run in turn, so that other work on the machine affects all alike. Processor time is that of all Node
// processes that the command starts. On a busy machine it is more reliable than elapsed time.
//   node bench/run-cost.mjs [rounds]
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** Each Node process appends its processor time to this file when it exits. */
const log = join(folder, "processor-times");
const hook = join(folder, "hook.cjs");
writeFileSync(
  hook,
  `process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    require("node:fs").appendFileSync(${JSON.stringify(log)}, (user + system) / 1000 + "\\n");
  });`,
);
const env = { ...process.env, NODE_OPTIONS: `--require ${hook}` };

const run = (endpoints) => [command, "run", "--endpoints", endpoints, "cost", "--", "true"];
/**
 * The arguments, and the number of Node processes that they start: the command, its guard, and for stores
 * that are files the front.
 */
const cases = {
  "node -e 0": [["-e", "0"], 1],
  "run at a cluster of three": [run(members[0][1]), 2],
  "run on three directories": [run(`delta+file://${stores.join(",")}`), 3],
  "run in memory": [run("memory:cost"), 2],
  "leasehold --version": [[command, "--version"], 1],
};

async function timed([words, processes]) {
  rmSync(log, { force: true });
  const begunMs = performance.now();
  const { status } = spawnSync(process.execPath, words, { stdio: "ignore", env });
  const wholeMs = performance.now() - begunMs;
  if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}`);
  // The guard exits a moment after the command.
  for (;;) {
    const used = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").map(Number) : [];
    if (used.length === processes) return { wholeMs, processorMs: used.reduce((sum, ms) => sum + ms, 0) };
    await sleep(10);
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

try {
  // Wait until the members' recovery wait is over.
  await sleep(8_000);
  const times = new Map(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, each] of Object.entries(cases)) times.get(name).push(await timed(each));
  const columns = [
    ["time", "wholeMs"],
    ["processor time", "processorMs"],
  ];
  for (const [name, all] of times) {
    const parts = columns.map(([what, column]) => {
      const [own, empty] = [all, times.get("node -e 0")].map((each) => each.map((time) => time[column]));
      const [ms, least] = [median(own), Math.min(...own)].map((value) => value.toFixed(0).padStart(5));
      return `${what}${ms} ms, ${(median(own) / median(empty)).toFixed(2)} times, least${least} ms`;
    });
    process.stdout.write(`${name.padEnd(26)} ${parts.join("; ")}\n`);
  }
} finally {
  for (const peer of peers) peer.kill();
  rmSync(folder, { recursive: true, force: true });
}
