import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Running, eventually, isAlive, leasehold } from "../support/built.js";
import { Arena, commandName, report, ttlMs } from "./arena.js";

/** `leasehold run` on a real cluster: its command is gone before anybody else can have the lease. */

let arena: Arena;
let running: Running[];

beforeEach(async () => {
  arena = await Arena.start({ proxied: true });
  running = [];
});

afterEach(async () => {
  for (const run of running) run.process.kill("SIGKILL");
  await arena.close();
});

/** Writes the time on the machine's steady clock about every millisecond, and ignores SIGTERM. */
const STUBBORN = `
  const { openSync, writeSync } = require("node:fs");
  process.on("SIGTERM", () => {});
  const file = openSync(process.argv[1], "a");
  setInterval(() => writeSync(file, process.pid + " " + process.hrtime.bigint() + "\\n"), 1);
`;

function run(words: readonly string[], command: readonly string[]): Running {
  const endpoints = arena.endpoints.flatMap((endpoint) => ["--endpoints", endpoint]);
  const started = leasehold(["run", ...words, ...endpoints, "--", ...command]);
  running.push(started);
  return started;
}

interface Stubborn {
  readonly run: Running;
  /** The command's pid and its last time stamp. */
  last(): { pid: number; at: bigint };
}

async function startStubborn(): Promise<Stubborn> {
  const path = join(arena.folder, "stamps");
  const started = run(["guarded"], [process.execPath, "-e", STUBBORN, path]);
  const stamps = (): string[] => {
    try {
      return readFileSync(path, "utf8").trim().split("\n");
    } catch {
      return [];
    }
  };
  await eventually("the command has started", () => stamps().length > 1);
  return {
    run: started,
    last: () => {
      const [pid, at] = stamps().at(-1)!.split(" ");
      return { pid: Number(pid), at: BigInt(at!) };
    },
  };
}

/** Lets another client wait for the lease. Resolves with the time of its first look at it. */
async function nextHolderAt(): Promise<bigint> {
  await arena.holderOf("guarded", 4 * ttlMs);
  const history = await arena.judge();
  return history.tenures[0]!.first.m1;
}

async function expectGoneInTime(stubborn: Stubborn): Promise<void> {
  const nextAt = await nextHolderAt();
  const { pid, at } = stubborn.last();
  report(
    `the command's last stamp was ${(Number(nextAt - at) / 1e6).toFixed(1)} ms before the next holder's first look`,
  );
  expect(isAlive(pid)).toBe(false);
  expect(at).toBeLessThan(nextAt);
}

describe("the command is gone before another can have the lease", () => {
  test("when run is killed", async () => {
    const stubborn = await startStubborn();
    arena.addHolder({ resources: ["guarded"] });
    await sleep(ttlMs);
    stubborn.run.process.kill("SIGKILL");
    await expectGoneInTime(stubborn);
    expect((await stubborn.run.finished).signal).toBe("SIGKILL");
  });

  test("when run is stopped, and run reports it when it continues", async () => {
    const stubborn = await startStubborn();
    arena.addHolder({ resources: ["guarded"] });
    await sleep(ttlMs);
    stubborn.run.process.kill("SIGSTOP");
    await expectGoneInTime(stubborn);
    stubborn.run.process.kill("SIGCONT");
    expect((await stubborn.run.finished).code).toBe(76);
  });

  test("when run is cut off from the members", async () => {
    const stubborn = await startStubborn();
    arena.addHolder({ resources: ["guarded"] });
    await sleep(ttlMs);
    const name = commandName(stubborn.run.pid);
    arena.network.cutBothWays(name, "*");
    await expectGoneInTime(stubborn);
    expect((await stubborn.run.finished).code).toBe(76);
    expect(arena.network.swallowed).toBeGreaterThan(0);
  });
});

test("the command's exit code is passed on, and its lease is released at once", async () => {
  const first = await run(["job"], ["sh", "-c", "exit 7"]).finished;
  expect(first).toMatchObject({ code: 7, stderr: "" });
  const second = await run(["job", "--try"], ["sh", "-c", 'echo "$LEASE_NAME $LEASE_TOKEN"']).finished;
  expect(second).toMatchObject({ code: 0, stdout: expect.stringMatching(/^job \d+\n$/) });
});

test("--try ends with 75 when another has the lease, and names the holder", async () => {
  const holder = arena.addHolder({ resources: ["job"], holdMs: [30_000, 30_000] });
  await arena.holderOf("job");
  const refused = await run(["job", "--try"], ["true"]).finished;
  expect(refused.code).toBe(75);
  expect(refused.stderr).toContain(`job: held by ${holder.name}.`);
});
