import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { exitCode } from "../../packages/leasehold/src/cli/common/exit-codes.js";
import { eventually, packageFolder } from "../support/built.js";

/** The cost of `leasehold run` compared with an empty program; `bench/run-cost.mjs` measures it. */

const command = join(packageFolder, "bin", "leasehold.js");

/**
 * The greatest ratio of its processor time to that of an empty program. It is about three; a further process,
 * or as much more code, would exceed the bound.
 */
const ratioMax = 4.5;
const rounds = 7;

/** The most files that `run` and its guard load. */
const loadedMax = { run: 40, guard: 12 };

const run = (name: string) => [command, "run", "--endpoints", `memory:${name}`, name, "--", "true"];

/** A program's environment in which each process that loads modules first runs this code. */
function hooked(code: (folder: string) => string) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-cost-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const hook = join(folder, "hook.cjs");
  writeFileSync(hook, code(JSON.stringify(folder)));
  return { folder, env: { ...process.env, NODE_OPTIONS: `--require ${hook}` } };
}

/** A process that exits appends its processor time, which excludes waiting for a processor. */
const writesTime = (folder: string) => `
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    require("node:fs").appendFileSync(${folder} + "/times", (user + system) / 1000 + "\\n");
  });`;

/** The processor time of a program, summed over the Node processes that it starts. */
async function processorMs(words: readonly string[], processes: number): Promise<number> {
  const { folder, env } = hooked(writesTime);
  expect(spawnSync(process.execPath, words, { stdio: "ignore", env }).status).toBe(0);
  const times = await eventually(`${processes} processes have ended`, () => {
    const path = join(folder, "times");
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    return lines.length === processes && lines;
  });
  return times.reduce((sum, line) => sum + Number(line), 0);
}

test(`run and its guard take less than ${ratioMax} times the processor time of an empty program`, async () => {
  const times = { run: [] as number[], empty: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    times.empty.push(await processorMs(["-e", "0"], 1));
    times.run.push(await processorMs(run("timed"), 2));
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!;
  expect(median(times.run)).toBeLessThan(ratioMax * median(times.empty));
});

/** A process writes the list of its loaded files when it starts and when it exits. */
const writesLoaded = (folder: string) => `
  const { renameSync, writeFileSync } = require("node:fs");
  const isGuard = process.argv[1].endsWith("guard.js");
  const write = (name) => {
    const files = Object.keys(require.cache).filter((file) => file !== __filename);
    const path = ${folder} + "/" + name + ".json";
    writeFileSync(path + ".new", JSON.stringify(files));
    renameSync(path + ".new", path);
  };
  const processes = require("node:child_process");
  const { spawn } = processes;
  processes.spawn = (...words) => {
    if (!isGuard) write("spawning");
    return spawn(...words);
  };
  process.on("exit", () => write(isGuard ? "guard" : "run"));`;

/** Waits, since the guard exits a moment after run. */
const loadedBy = async (folder: string, name: string) =>
  JSON.parse(
    await eventually(`${name} has ended`, () => {
      const path = join(folder, `${name}.json`);
      return existsSync(path) && readFileSync(path, "utf8");
    }),
  ) as string[];

test("run and its guard load few files, all from the bundle", async () => {
  const { folder, env } = hooked(writesLoaded);
  expect(spawnSync(process.execPath, run("loaded"), { stdio: "ignore", env }).status).toBe(0);
  for (const name of ["run", "guard"] as const) {
    const files = await loadedBy(folder, name);
    expect(files.length).toBeLessThanOrEqual(loadedMax[name]);
    for (const file of files)
      expect(file).toMatch(/[\\/](?:bin[\\/]leasehold|dist[\\/]bundle[\\/][\w-]+)\.js$/);
  }
});

test("run starts its guard before it loads the command", async () => {
  const { folder, env } = hooked(writesLoaded);
  expect(spawnSync(process.execPath, run("early"), { stdio: "ignore", env }).status).toBe(0);
  const files = (await loadedBy(folder, "spawning")).map((path) => basename(path));
  expect(files).toEqual(expect.arrayContaining(["main.js", "first.js", "guarding.js"]));
  expect(files).not.toContain("command.js");
  expect(files).not.toContain("leases.js");
});

test("a guard that was started for invalid arguments exits with run, and keeps no output open", async () => {
  const { env } = hooked(
    () => `
      // A guard that is still loading does not notice that its pipes have closed.
      if (process.argv[1].endsWith("guard.js")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`,
  );
  const child = spawn(process.execPath, [command, "run", "--no-such-option", "refused", "--", "true"], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  child.stdout.resume();
  expect(await once(child, "close")).toEqual([exitCode("usage"), null]);
});

test.each([
  ["no command", ["run", "--help"]],
  ["another command", ["ls", "--endpoints", "memory:other"]],
])("arguments with which run %s start no guard", (_what, words) => {
  const { folder, env } = hooked(writesLoaded);
  expect(spawnSync(process.execPath, [command, ...words], { stdio: "ignore", env }).status).toBe(0);
  expect(existsSync(join(folder, "spawning.json"))).toBe(false);
});
