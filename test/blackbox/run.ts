import { setTimeout as sleep } from "node:timers/promises";
import type { Build } from "./build.js";
import { strike } from "./faults.js";
import { type Judgement, judge } from "./judgement.js";
import { type FaultKind, type PlannedFault, planFaults } from "./plan.js";
import type { Progress } from "./progress.js";
import type { RunFolder } from "./run-folder.js";
import { alone, recoveryMs, ttlMs, waitMsMax } from "./settings.js";
import { Stage } from "./stage.js";
import type { Task } from "./tasks.js";

export interface RunOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly members: number;
  readonly build: Build;
  /** The task of each holder. Default: some names, each held exclusively. */
  readonly tasks?: readonly Task[];
  /** Limits the run to these kinds of faults. Default: all. */
  readonly kinds?: readonly FaultKind[];
  /** Holders that never wait, never renew, and try again at once. */
  readonly greedy?: boolean;
  /** See `StageOptions`. */
  readonly offsetMs?: (name: string) => number;
  readonly folder: RunFolder;
}

export interface RunResult {
  readonly seed: number;
  readonly seconds: number;
  readonly judgement: Judgement;
  readonly takeoverMsMax: number;
  readonly accidents: readonly string[];
  /** See `Stage`. */
  readonly touched: ReadonlyMap<FaultKind, number>;
  /** Members of `leasehold peer` that have raised a clock alarm. */
  readonly alarmed: readonly string[];
}

/** The number of holders that are members themselves, beside the `leasehold peer` processes. */
const embedded = 2;
const clients = 3;

/** The calm after a fault lasts until its effect is visible, and a little more at times. */
const calmMs = { min: 1.4 * ttlMs, max: 1.9 * ttlMs };

/**
 * Holders look this often in runs of up to ten minutes. In longer runs they look less often, so that their
 * journals stay readable.
 */
const lookEveryMs = 10;
const minutesOfCloseLooks = 10;

/**
 * Runs a whole test: starts all processes, injects faults until the time is up, ends all processes, and
 * judges the journals.
 */
export async function play(options: RunOptions, progress: Progress): Promise<RunResult> {
  const { seed, minutes, members, build, tasks = alone, kinds, greedy = false, offsetMs, folder } = options;
  const startedMs = performance.now();
  const stage = new Stage({
    run: `${seed}-${process.pid}-${Date.now()}`,
    folder: folder.path,
    seed,
    build,
    members,
    embedded,
    clients,
    tasks,
    greedy,
    lookEveryMs: lookEveryMs * Math.max(1, minutes / minutesOfCloseLooks),
    ...(offsetMs !== undefined && { offsetMs }),
  });
  await stage.open();
  const endMs = startedMs + minutes * 60_000;
  await strikeUntil(stage, planFaults(seed, kinds), endMs, progress);
  stage.heal();
  await stage.settled(waitMsMax);
  await sleep(recoveryMs + ttlMs);
  await stage.close();
  progress.say(1, "reading the journals");
  return {
    seed,
    seconds: (performance.now() - startedMs) / 1_000,
    judgement: judge(folder.journals()),
    takeoverMsMax: stage.takeoverMsMax,
    accidents: stage.accidents,
    touched: stage.touched,
    alarmed: [...stage.alarmed],
  };
}

async function strikeUntil(
  stage: Stage,
  plan: Generator<PlannedFault, never>,
  endMs: number,
  progress: Progress,
): Promise<void> {
  const beganMs = performance.now();
  let count = 0;
  let before: Promise<void> = Promise.resolve();
  while (performance.now() < endMs) {
    const fault = plan.next().value;
    progress.say((performance.now() - beganMs) / (endMs - beganMs), `fault ${++count}: ${fault.kind}`);
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
}
