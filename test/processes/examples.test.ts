import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { eventually } from "../support/built.js";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";

/**
 * Each file of `examples/` is run as a reader would run it: by Node, with the built package, against real
 * members.
 */

const folder = fileURLToPath(new URL("../../examples", import.meta.url));

interface Running {
  readonly process: ChildProcess;
  readonly closed: Promise<number | null>;
  output(): string;
}

let cluster: LocalCluster;
const started: ChildProcess[] = [];

function run(words: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, LEASEHOLD_MEMBER: cluster.urls[0], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const closed = once(child, "close").then(([code]) => code as number | null);
  return { process: child, closed, output: () => output };
}

/** Runs a program, expects success, and returns its output. */
async function outputOf(words: readonly string[], env?: Record<string, string>): Promise<string> {
  const running = run(words, env);
  expect({ code: await running.closed, output: running.output() }).toMatchObject({ code: 0 });
  return running.output();
}

const printed = (running: Running, pattern: RegExp): Promise<RegExpExecArray> =>
  eventually(`${pattern} in its output`, () => pattern.exec(running.output()) ?? undefined);

beforeAll(async () => {
  cluster = await startLocalCluster();
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});
afterAll(() => cluster.close());

describe("examples", () => {
  test("first-lease.mjs acquires a lease and leaves the resource free", async () => {
    const first = /^examples\/first is ours, token (\d+), \d+ ms left\n$/.exec(
      await outputOf(["first-lease.mjs"]),
    );
    const second = /token (\d+)/.exec(await outputOf(["first-lease.mjs"]));
    expect(BigInt(second![1]!)).toBeGreaterThan(BigInt(first![1]!));
  });

  test("run-once.mjs does a day once, however many machines start it, together or later", async () => {
    const results = mkdtempSync(join(tmpdir(), "run-once-"));
    const start = () => outputOf(["run-once.mjs", "2026-01-02"], { RESULTS: results });
    const outputs = await Promise.all([start(), start(), start()]);
    outputs.push(await start());
    expect(outputs.filter((output) => /^2026-01-02 done, token \d+\n$/.test(output))).toHaveLength(1);
    expect(outputs.filter((output) => /is done already|is at it/.test(output))).toHaveLength(3);
    expect(outputs.at(-1)).toBe("2026-01-02 is done already\n");
    expect(readdirSync(results)).toContain("2026-01-02.done");
    expect(readFileSync(join(results, "2026-01-02.orders"), "utf8")).toBe("orders of 2026-01-02\n");
    rmSync(results, { recursive: true });
  });

  test("guarded-counter.mjs: the write of a stopped writer is refused by the store", async () => {
    const lines = (await outputOf(["guarded-counter.mjs"])).trim().split("\n");
    expect(lines.filter((line) => line.includes(": wrote "))).toEqual([
      "slow: wrote 1",
      "slow: wrote 2",
      "quick: wrote 3",
      "quick: wrote 4",
      "quick: wrote 5",
    ]);
    expect(lines).toContain("slow: LEASE_LOST, nothing was written");
    expect(lines.at(-1)).toBe("the number is 5");
  });

  test("leader.mjs hands over when it is asked to stop, and is replaced when it is killed", async () => {
    const first = run(["leader.mjs"]);
    await printed(first, /leads with token/);
    const others = [run(["leader.mjs"]), run(["leader.mjs"])];
    await Promise.all(others.map((other) => printed(other, /standing by/)));
    first.process.kill("SIGTERM");
    expect(await first.closed).toBe(0);
    expect(first.output()).toContain("handed over");
    const leads = (running: Running) => running.output().includes("leads with token");
    const second = await eventually("another leads", () => others.find(leads));
    expect(others.filter(leads)).toHaveLength(1);
    second.process.kill("SIGKILL");
    const third = others.find((other) => other !== second)!;
    await printed(third, /leads with token/);
    third.process.kill("SIGTERM");
    expect(await third.closed).toBe(0);
  });

  test("fenced-file.mjs refuses the write of the writer that was stopped", async () => {
    const lines = (await outputOf(["fenced-file.mjs"])).split("\n");
    expect(lines[0]).toMatch(/^quick: token \d+ is written$/);
    expect(lines[1]).toMatch(/^slow: token \d+ is refused: \d+ has been here$/);
    expect(lines[2]).toBe("the file says: by quick");
  });

  test("embedded-member.mjs: three copies of a service elect a leader, and another when it is killed", async () => {
    const ports = await freePorts(3);
    const env = {
      MEMBERS: ports.map((port) => `127.0.0.1:${port}`).join(","),
      TTL_MAX: "1s",
      MAX_CLOCK_SKEW: "10ms",
    };
    const members = ["a", "b", "c"].map((id) => run(["embedded-member.mjs", id], env));
    const leads = (running: Running) => running.output().includes("leads with token");
    const first = await eventually("one leads", () => members.find(leads));
    first.process.kill("SIGKILL");
    const rest = members.filter((member) => member !== first);
    await eventually("another leads", () => rest.find(leads));
    for (const member of rest) member.process.kill("SIGTERM");
    expect(await Promise.all(rest.map((member) => member.closed))).toEqual([0, 0]);
  });

  test("once-per-period.mjs does the job once for each time it is due, wherever it starts within the window", async () => {
    const due = new Date().toISOString();
    const start = () => outputOf(["once-per-period.mjs", due], { WINDOW_MS: "4000", SKEW_MS: "100" });
    const outputs = await Promise.all([start(), start(), start()]);
    expect(outputs.filter((output) => /^begins with token \d+\ndone\n$/.test(output))).toHaveLength(1);
    expect(outputs.filter((output) => output === "another has done it\n")).toHaveLength(2);
    expect(await start()).toBe("too late for this period\n");
  });

  test("once-per-period.mjs: a waiting process does the job when the first crashes within the window", async () => {
    const words = ["once-per-period.mjs", new Date().toISOString()];
    const env = { WINDOW_MS: "8000", SKEW_MS: "100" };
    const first = run(words, { ...env, PART_MS: "60000" });
    await printed(first, /begins/);
    const second = run(words, env);
    first.process.kill("SIGKILL");
    expect(await second.closed).toBe(0);
    expect(second.output()).toMatch(/^begins with token \d+\ndone\n$/);
  });

  test("who-is-alive.mjs reports the live workers, and who comes and goes", async () => {
    const worker = run(["who-is-alive.mjs", "w1"], { PORT: "8081" });
    await printed(worker, /workers\/w1 is registered/);
    const observer = run(["who-is-alive.mjs"]);
    await printed(observer, /workers\/w1 is alive: .*"port":8081/);
    const other = run(["who-is-alive.mjs", "w2"]);
    await printed(observer, /workers\/w2 is alive/);
    other.process.kill("SIGKILL");
    await printed(observer, /workers\/w2 is gone/);
    for (const { process } of [worker, observer]) process.kill("SIGTERM");
    expect(await Promise.all([worker.closed, observer.closed])).toEqual([0, 0]);
    expect(worker.output()).toBe("workers/w1 is registered\n");
  });

  test("queue-worker.mjs: each job is done once by one worker, and again by another when that one is killed", async () => {
    const queue = mkdtempSync(join(tmpdir(), "queue-"));
    const jobs = ["a", "b", "c", "d", "e", "f"];
    for (const job of jobs) writeFileSync(join(queue, job), "");
    const killed = run(["queue-worker.mjs"], { QUEUE: queue, PART_MS: "60000" });
    const [, taken] = await printed(killed, /(\w) begins/);
    // The fast worker does jobs that the slow one has yet to do, and waits for those that others have begun.
    const slow = run(["queue-worker.mjs"], { QUEUE: queue, PART_MS: "700" });
    await printed(slow, /begins/);
    const workers = [slow, run(["queue-worker.mjs"], { QUEUE: queue })];
    expect(readdirSync(queue)).toContain(taken);
    killed.process.kill("SIGKILL");
    expect(await Promise.all(workers.map((worker) => worker.closed))).toEqual([0, 0]);
    const outputs = workers.map((worker) => worker.output()).join("");
    const begun = [...outputs.matchAll(/(\w) begins/g)].map(([, job]) => job).sort();
    expect(begun).toEqual(jobs);
    expect([...outputs.matchAll(/(\w) done/g)].map(([, job]) => job).sort()).toEqual(jobs);
    expect(readdirSync(queue)).toEqual(["done"]);
    rmSync(queue, { recursive: true });
  });

  test("http-handler.mjs does one request at a time for an account, and replies with tokens as text", async () => {
    const server = run(["http-handler.mjs"], { PORT: "0", WORK_MS: "300" });
    const [url] = await printed(server, /http:\S+/);
    const post = (path: string) => fetch(`${url}/${path}`, { method: "POST" });
    const replies = await Promise.all([post("accounts/7"), post("accounts/7"), post("accounts/8")]);
    const [first, refused] = replies.slice(0, 2).sort((one, other) => one.status - other.status);
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 200, 423]);
    const token = first!.headers.get("x-fencing-token");
    expect(await first!.json()).toMatchObject({ lease: { resource: "accounts/7", token } });
    expect(refused!.headers.get("retry-after")).toBe("1");
    expect(await refused!.json()).toMatchObject({ holder: { state: "held", token } });
    server.process.kill("SIGTERM");
    expect(await server.closed).toBe(0);
  });

  test("semaphore.mjs: two have a slot, and a third gets one only when one of them is gone", async () => {
    const place = async (running: Running) => (await printed(running, /has (place \d)\n/))[1];
    const holders = [1, 2].map(() => run(["semaphore.mjs"], { WORK_MS: "60000" }));
    const places = await Promise.all(holders.map(place));
    expect([...places].sort()).toEqual(["place 0", "place 1"]);
    const third = run(["semaphore.mjs"]);
    await sleep(2_000); // it tries all slots, and then waits
    expect(third.output()).toBe("");
    holders[1]!.process.kill("SIGKILL");
    expect(await third.closed).toBe(0);
    expect(third.output()).toBe(`has ${places[1]}\nleaves ${places[1]}\n`);
  });

  test("test-your-code.test.mjs passes, and contains tests", async () => {
    const output = await outputOf(["--test", "--test-reporter=tap", "test-your-code.test.mjs"]);
    expect(output).toMatch(/^# pass 4$/m);
    expect(output).toMatch(/^# fail 0$/m);
  });

  // The whole conformance suite of stores, over HTTP, takes seconds.
  test("own-store.test.mjs: a custom store passes the suite, and leases work on three of them", async () => {
    const output = await outputOf(["--test", "--test-reporter=tap", "own-store.test.mjs"]);
    expect(output).toContain("one of three servers may be gone");
    expect(output).toMatch(/^# pass \d\d$/m);
    expect(output).toMatch(/^# fail 0$/m);
  }, 120_000);

  test("every example is tested here, or in a test that needs more than this", () => {
    // test/core/moving.test.ts runs it with an etcd.
    const elsewhere = new Set(["move-keys.mjs"]);
    const self = readFileSync(fileURLToPath(import.meta.url), "utf8");
    // Some examples leave a folder of results where they were started.
    const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    const untried = files.filter(({ name }) => !self.includes(`"${name}"`) && !elsewhere.has(name));
    expect(untried).toEqual([]);
  });
});
