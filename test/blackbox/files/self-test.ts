import { withPlanted } from "../build.js";
import type { Progress } from "../progress.js";
import { RunFolder } from "../run-folder.js";
import type { FileFault } from "./faults.js";
import { playFiles } from "./run.js";

/** One check of the file test itself: a build with a mistake that the test must find. */
interface FilesSelfTest {
  readonly name: string;
  readonly planted: Parameters<typeof withPlanted>[0][];
  readonly kinds: readonly FileFault[];
}

const selfTests: readonly FilesSelfTest[] = [
  {
    name: "a primary reads without checking its lease",
    planted: ["filesReadWithoutLease"],
    kinds: ["node-stopped"],
  },
  {
    name: "a replica obeys a primary whose epoch it has promised to refuse",
    planted: ["filesOldEpochsCount"],
    kinds: ["late-writes"],
  },
  {
    name: "a primary acknowledges a write that only its own disk has",
    planted: ["filesMinorityCounts"],
    kinds: ["full-cut"],
  },
];

/** The length of one run in minutes, and the most runs until the mistake must be found. */
const minutes = 0.5;
const runsMax = 6;
const firstSeed = 21;

/** Runs all of them. The exit code is 0 only if each mistake was found. */
export async function filesSelfTest(output: string, progress: Progress): Promise<number> {
  const results: object[] = [];
  let failed = 0;
  for (const { name, planted, kinds } of selfTests) {
    let [seconds, calls, runs] = [0, 0, 0];
    let found: string | undefined;
    while (found === undefined && runs < runsMax) {
      const folder = new RunFolder();
      const build = withPlanted(...planted);
      const result = await playFiles({ minutes, seed: firstSeed + runs, build, kinds, folder }, progress);
      progress.clear();
      runs += 1;
      seconds += Math.round(result.seconds);
      calls += Object.values(result.calls.done).reduce((sum, count) => sum + count, 0);
      found = [...result.calls.violations, ...result.disks.differences][0];
    }
    if (found === undefined) failed += 1;
    results.push({ name, seen: found !== undefined, found, seconds, calls, runs });
    if (output === "json") continue;
    const verdict = found === undefined ? "NOT SEEN" : "seen";
    process.stdout.write(`${verdict}: ${name}\n  ${calls} calls in ${runs} runs, ${seconds} s\n`);
    if (found !== undefined) process.stdout.write(`  ${found}\n`);
  }
  if (output === "json") process.stdout.write(`${JSON.stringify({ failed, selfTests: results })}\n`);
  return failed === 0 ? 0 : 1;
}
