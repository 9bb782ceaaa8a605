import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedisServer } from "../stores/servers/redis.js";
import { eventually } from "../support/built.js";
import { pack, run, tool } from "./packed.js";

/** The worker from `docs/recipes.md` with the real BullMQ on a real Redis, in processes of their own. */

const packages = ["bullmq@6.7.0", "ioredis@5"];
const obstacle = existsSync("/usr/bin/redis-server") ? "" : " (skipped: there is no redis-server)";

let folder: string;
let redis: RedisServer;
let member: string;
const started: ChildProcess[] = [];

interface Running {
  readonly process: ChildProcess;
  output(): string;
}

function start(command: string, words: readonly string[], more = {}): Running {
  const env = { ...process.env, NODE_ENV: "", NO_COLOR: "1", ...more };
  const child = spawn(command, words, {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  return { process: child, output: () => output };
}

/** Work that takes `workMs`, and prints its begin and end. */
const worker = (workMs: number) => start(process.execPath, ["worker.mjs"], { WORK_MS: String(workMs) });

interface Work {
  readonly at: "begin" | "end";
  readonly customer: string;
  readonly job: string;
  readonly token: number;
  readonly ms: number;
}

/** The output of all workers, in the order of time. */
function workOf(workers: readonly Running[]): Work[] {
  const lines = workers.flatMap((each) => each.output().match(/^\{.*\}$/gm) ?? []);
  return lines.map((line) => JSON.parse(line) as Work).sort((a, b) => a.ms - b.ms);
}

async function add(jobs: readonly { readonly customer: string; readonly job: string }[]): Promise<void> {
  await run(folder, process.execPath, ["add.mjs", JSON.stringify(jobs)]);
}

beforeAll(async () => {
  if (obstacle !== "") return;
  const packed = await pack();
  folder = packed.folder;
  redis = await RedisServer.start();
  await run(folder, "npm", ["init", "--yes"]);
  const quiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
  await run(folder, "npm", ["install", ...quiet, packed.tarball, ...packages]);
  const up = start(tool(folder, "leasehold"), ["up", "--no-kills"]);
  [, member] = (await eventually(
    "a cluster",
    () => /local cluster: a (127\.0\.0\.1:\d+)/.exec(up.output()) ?? undefined,
    30_000,
  )) as unknown as [string, string];
  // Members grant nothing in their recovery wait; a worker that asked them then would fail its job.
  await run(folder, tool(folder, "leasehold"), [
    "run",
    "--endpoints",
    `flease://${member}`,
    "--wait",
    "30s",
    "ready",
    "--",
    "true",
  ]);
  const recipes = readFileSync(new URL("../../docs/recipes.md", import.meta.url), "utf8");
  const recipe = recipes.split(/^## /m).find((text) => text.startsWith("A queue's workers\n"))!;
  const [, code] = /^```js\n([^]*?)^```$/m.exec(recipe)!;
  // BullMQ notices a dead worker when its lock has expired, after 30 s by default; here after 1 s.
  const options = "{ connection, concurrency: 3, lockDuration: 1_000, stalledInterval: 500 }";
  const connection = `const connection = { host: "127.0.0.1", port: ${redis.port}, maxRetriesPerRequest: null };`;
  writeFileSync(
    join(folder, "worker.mjs"),
    `import { open } from "leasehold";
const leases = await open("flease://${member}");
${connection}
const say = (at, { customer, job }, token) =>
  console.log(JSON.stringify({ at, customer, job, token: Number(token), ms: performance.timeOrigin + performance.now() }));
const sendMail = async (data, { token }) => {
  say("begin", data, token);
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.WORK_MS)));
  say("end", data, token);
};
${code!.replace("{ connection }", options)}
await worker.waitUntilReady();`,
  );
  writeFileSync(
    join(folder, "add.mjs"),
    `import { Queue } from "bullmq";
${connection}
const queue = new Queue("mails", { connection });
await queue.addBulk(JSON.parse(process.argv[2]).map((data) => ({ name: "mail", data })));
await queue.close();`,
  );
});

afterAll(async () => {
  for (const { pid, exitCode, signalCode } of started)
    if (exitCode === null && signalCode === null) process.kill(-pid!, "SIGKILL");
  await redis?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(obstacle !== "")(`workers of BullMQ${obstacle}`, () => {
  test("three do nine jobs of two customers: each once, and one at a time for a customer", async () => {
    const jobs = [..."abcdefghi"].map((job, index) => ({ job, customer: `c${index % 2}` }));
    await add(jobs);
    const workers = [1, 2, 3].map(() => worker(150));
    const isDone = () => workOf(workers).filter(({ at }) => at === "end").length >= jobs.length;
    await eventually("all jobs are done", isDone, 60_000);
    const all = workOf(workers);
    expect(
      all
        .filter(({ at }) => at === "begin")
        .map(({ job }) => job)
        .sort(),
    ).toEqual([..."abcdefghi"]);
    for (const customer of ["c0", "c1"]) {
      const own = all.filter((each) => each.customer === customer);
      // Each begin is followed by its own end, with a greater token than the previous one.
      own.forEach(({ at, job }, index) => {
        expect(at).toBe(index % 2 === 0 ? "begin" : "end");
        expect(job).toBe(own[index - (index % 2)]!.job);
      });
      const tokens = own.filter(({ at }) => at === "begin").map(({ token }) => token);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    }
    for (const { process: child } of workers) child.kill("SIGKILL");
  });

  test("a worker is killed at work: the job continues at another, under a greater token", async () => {
    const first = worker(60_000);
    await add([{ customer: "k", job: "j" }]);
    await eventually("the job begins", () => workOf([first]).length === 1, 30_000);
    first.process.kill("SIGKILL");
    const killedMs = performance.timeOrigin + performance.now();
    const others = [worker(100), worker(100)];
    await eventually("the job is done", () => workOf(others).some(({ at }) => at === "end"), 60_000);
    const all = workOf([first, ...others]);
    expect(all.map(({ at, job }) => `${at} ${job}`)).toEqual(["begin j", "begin j", "end j"]);
    expect(all[1]!.token).toBeGreaterThan(all[0]!.token);
    expect(all[1]!.ms).toBeGreaterThan(killedMs);
  });
});
