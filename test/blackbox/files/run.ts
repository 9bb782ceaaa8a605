import { setTimeout as sleep } from "node:timers/promises";
import type { Build } from "../build.js";
import { planRounds } from "../plan.js";
import type { Progress } from "../progress.js";
import type { RunFolder } from "../run-folder.js";
import { readCalls } from "./call-journal.js";
import { compareDisks, type DisksJudgement } from "./disks.js";
import { type FileFault, fileFaults, mayMeet, strike } from "./faults.js";
import { type CallsJudgement, judgeCalls } from "./judge-calls.js";
import { ttlMs, waitMsMax } from "./settings.js";
import { FilesStage } from "./stage.js";

export interface FilesRunOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly build: Build;
  /** Limits the run to these kinds of faults. Default: all. */
  readonly kinds?: readonly FileFault[];
  readonly folder: RunFolder;
}

export interface FilesResult {
  readonly seed: number;
  readonly seconds: number;
  readonly calls: CallsJudgement;
  readonly disks: DisksJudgement;
  readonly resets: number;
  readonly faults: ReadonlyMap<FileFault, { readonly times: number; readonly touched?: number }>;
  readonly accidents: readonly string[];
}

/**
 * The calm after a fault is mostly too short for a full recovery, so that calls are judged during recovery.
 */
const calmMs = { min: 0.2 * ttlMs, max: 1.2 * ttlMs };

/**
 * Runs a whole test: starts nodes and client, injects faults until the time is up, reads everything, and
 * judges the journal and the disks.
 */
export async function playFiles(options: FilesRunOptions, progress: Progress): Promise<FilesResult> {
  const { seed, minutes, build, kinds = fileFaults, folder } = options;
  const startedMs = performance.now();
  const run = `${seed}-${process.pid}-${Date.now()}`;
  const stage = new FilesStage({ run, folder: folder.path, seed, build });
  await stage.open(waitMsMax);
  const endMs = startedMs + minutes * 60_000;
  const beganMs = performance.now();
  const plan = planRounds(seed, kinds, mayMeet);
  let before: Promise<void> = Promise.resolve();
  for (let count = 1; performance.now() < endMs; count += 1) {
    const fault = plan.next().value;
    progress.say((performance.now() - beganMs) / (endMs - beganMs), `fault ${count}: ${fault.kind}`);
    const struck = strike(stage, fault);
    if (fault.meetsNext) {
      before = struck;
      await sleep(0.3 * ttlMs);
      continue;
    }
    await Promise.all([before, struck]);
    await stage.settled(waitMsMax);
    await sleep(calmMs.min + (calmMs.max - calmMs.min) * fault.calm);
  }
  await before;
  stage.heal();
  await stage.settled(waitMsMax);
  await stage.whole(waitMsMax);
  progress.say(1, "reading everything at each node");
  await stage.close(waitMsMax);
  progress.say(1, "judging");
  return {
    seed,
    seconds: (performance.now() - startedMs) / 1_000,
    calls: judgeCalls(readCalls(stage.calls)),
    disks: await compareDisks(stage.disks),
    resets: stage.resets,
    faults: stage.faults,
    accidents: stage.accidents,
  };
}
