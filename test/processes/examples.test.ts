import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { eventually } from "../support/built.js";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";

/** Each file of `examples/` is run as its reader would run it: by Node, with the built package, against real members. */

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

/** What it printed when it has ended well. */
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
  test("first-lease.mjs takes a lease and leaves the resource free", async () => {
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

  test("test-your-code.test.mjs passes, and not because it has no tests", async () => {
    const output = await outputOf(["--test", "--test-reporter=tap", "test-your-code.test.mjs"]);
    expect(output).toMatch(/^# pass 4$/m);
    expect(output).toMatch(/^# fail 0$/m);
  });

  // The whole suite of stores, over HTTP: seconds of work.
  test("own-store.test.mjs: a store of one's own passes the suite, and leases stand on three", async () => {
    const output = await outputOf(["--test", "--test-reporter=tap", "own-store.test.mjs"]);
    expect(output).toContain("one of three servers may be gone");
    expect(output).toMatch(/^# pass \d\d$/m);
    expect(output).toMatch(/^# fail 0$/m);
  }, 120_000);

  test("every example is here", () => {
    const self = readFileSync(fileURLToPath(import.meta.url), "utf8");
    // Some leave a folder of results behind where they were started.
    const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.filter(({ name }) => !self.includes(`"${name}"`))).toEqual([]);
  });
});
