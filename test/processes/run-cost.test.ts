import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually, packageFolder } from "../support/built.js";

/** What `leasehold run` costs beside an empty program; `bench/run-cost.mjs` measures it. */

const command = join(packageFolder, "bin", "leasehold.js");

/** Far above what it takes on a machine that is idle, about three. */
const ratioMax = 15;
const rounds = 7;

/** The files that `run` and its guard load, by process. */
const loadedMax = { run: 40, guard: 12 };

/** The least that the program takes, ms: a busy machine makes each of them slower, but seldom all. */
function leastMs(words: readonly string[]): number {
  const times = Array.from({ length: rounds }, () => {
    const begunMs = performance.now();
    expect(spawnSync(process.execPath, words, { stdio: "ignore" }).status).toBe(0);
    return performance.now() - begunMs;
  });
  return Math.min(...times);
}

const run = (name: string) => [command, "run", "--endpoints", `memory:${name}`, name, "--", "true"];

test(`run takes less than ${ratioMax} times what an empty program takes`, () => {
  expect(leastMs(run("timed"))).toBeLessThan(ratioMax * leastMs(["-e", "0"]));
});

test("run and its guard load few files, all of the bundle", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-cost-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const hook = join(folder, "hook.cjs");
  writeFileSync(
    hook,
    `const { renameSync, writeFileSync } = require("node:fs");
    process.on("exit", () => {
      const own = process.argv[1].endsWith("guard.js") ? "guard" : "run";
      const files = Object.keys(require.cache).filter((file) => file !== __filename);
      const path = ${JSON.stringify(folder)} + "/" + own + ".json";
      writeFileSync(path + ".new", JSON.stringify(files));
      renameSync(path + ".new", path);
    });`,
  );
  const env = { ...process.env, NODE_OPTIONS: `--require ${hook}` };
  expect(spawnSync(process.execPath, run("loaded"), { stdio: "ignore", env }).status).toBe(0);
  for (const name of ["run", "guard"] as const) {
    // The guard ends by itself, a moment after run.
    const text = await eventually(`${name} has ended`, () => {
      const path = join(folder, `${name}.json`);
      return existsSync(path) && readFileSync(path, "utf8");
    });
    const files = JSON.parse(text) as string[];
    expect(files.length).toBeLessThanOrEqual(loadedMax[name]);
    for (const file of files)
      expect(file).toMatch(/[\\/](?:bin[\\/]leasehold|dist[\\/]bundle[\\/][\w-]+)\.js$/);
  }
});
