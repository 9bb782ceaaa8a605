// Runs the fast tests repeatedly while every core is busy: `node scripts/test-busy.mjs [runs]`. A test that
// depends on timing fails here sooner or later.
import { spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { root } from "./planted-sources.mjs";

const [runs = "10"] = process.argv.slice(2);
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
// The loops end with this process, however it ends.
const work = "const parent = process.ppid; while (process.ppid === parent);";
const busy = Array.from({ length: availableParallelism() }, () =>
  spawn(process.execPath, ["--eval", work], { stdio: "ignore" }),
);

let failed = 0;
for (let run = 1; run <= Number(runs); run += 1) {
  const startMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [vitest, "run"], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
    maxBuffer: 64 * 1024 * 1024,
  });
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
  if (status !== 0) failed += 1;
  process.stdout.write(`run ${run} of ${runs}: ${status === 0 ? "passed" : "FAILED"} (${seconds} s)\n`);
  // Vitest writes the failures there.
  if (status !== 0) process.stdout.write(stderr);
}
for (const child of busy) child.kill("SIGKILL");
process.stdout.write(`${failed} of ${runs} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
