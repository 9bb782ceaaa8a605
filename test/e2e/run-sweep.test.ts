import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import {
  type Finished,
  type Running,
  childrenOf,
  dist,
  eventually,
  isAlive,
  leasehold,
} from "../support/built.js";
import { PlantedBuild } from "../support/planted-build.js";

/**
 * Each process of `leasehold run` is killed or stopped at moments swept from the start of the guard until
 * some time after the start of the command. No command is left behind, `run` doesn't end before its command,
 * and it reports a kill only if there was one. `LEASEHOLD_TRIES` is the number of moments in each case: few
 * by default, as this runs on every change; a hundred or more find rare failures.
 */

const TRIES = Number(process.env["LEASEHOLD_TRIES"] ?? 6);
/** The number of trials at once. They also disturb each other, which shifts the moments. */
const AT_ONCE = 3;
const TTL_MS = 2_000;
/** The range swept from the guard's start: the time that a gate takes to start. */
const GUARD_SWEEP_MS = 240;
/** The range swept from the gate's start: it opens and starts the command. */
const GATE_SWEEP_MS = 6;
/** The range swept while the command works. */
const WORK_SWEEP_MS = 60;
const GOLDEN_SECTION = (Math.sqrt(5) - 1) / 2;
/** Slack for a busy machine. */
const SLACK_MS = 2_500;
/** Any command that was still to start would have started by then. */
const LATER_MS = 100;

const started: Running[] = [];
let trials = 0;

afterAll(() => {
  for (const { process: child } of started) child.kill("SIGKILL");
});

interface Trial {
  readonly run: Running;
  readonly guard: number;
  /**
   * The command's processes that can still run: one in its group, and one that `timeout` has taken out of it.
   */
  command(): number[];
  /**
   * The leader of the command's group, if there is one that is already a shell and no longer a copy of the
   * guard.
   */
  gate(): number | undefined;
}

type Script = (name: string) => string;

const ESCAPING: Script = (name) => `timeout 300 sleep ${name} & exec sleep ${name}`;

/**
 * @param seconds how long the command sleeps. Digits are appended, so that no other process sleeps for
 * exactly as long.
 */
async function start(build: string, script: Script = ESCAPING, seconds = "300."): Promise<Trial> {
  trials += 1;
  const name = `${seconds}000${process.pid}${trials}`;
  const words = ["run", "demo/x", "--endpoints", "memory:", "--ttl", `${TTL_MS}ms`, "--", "/bin/sh", "-c"];
  const run = leasehold([...words, script(name)], {}, build);
  started.push(run);
  const guard = await eventually("the guard is there", () => childrenOf(run.pid)[0], 20_000);
  const command = (): number[] => sleeping(name).filter(isAlive);
  return { run, guard, command, gate: () => gateOf(guard) };
}

/** Between fork and exec the gate still has the guard's command line. */
function gateOf(guard: number): number | undefined {
  return childrenOf(guard).find((pid) => commandLine(String(pid)).startsWith("/bin/sh\0"));
}

function sleeping(name: string): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && commandLine(entry) === `sleep\0${name}\0`)
    .map(Number);
}

function commandLine(entry: string): string {
  try {
    return readFileSync(`/proc/${entry}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** From 0 to 1. The first numbers of this sequence are evenly spread, however many are taken. */
function spread(index: number): number {
  return (index * GOLDEN_SECTION) % 1;
}

/**
 * Waits until moment number `index`. One third of the moments is counted from the guard's start, one from the
 * gate's start, and one from the command at work.
 */
async function moment(trial: Trial, index: number): Promise<void> {
  const share = spread(Math.floor(index / 3));
  if (index % 3 === 0) {
    await sleep(share * GUARD_SWEEP_MS);
  } else if (index % 3 === 1) {
    await eventually("the gate is there", () => trial.gate(), 20_000);
    const end = performance.now() + share * GATE_SWEEP_MS;
    while (performance.now() < end);
  } else {
    await working(trial);
    await sleep(share * WORK_SWEEP_MS);
  }
}

async function working(trial: Trial): Promise<void> {
  await eventually("the command works", () => trial.command().length === 2, 20_000);
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid !== undefined && isAlive(pid)) process.kill(pid, name);
}

function hasEnded({ run }: Trial): boolean {
  return run.process.exitCode !== null || run.process.signalCode !== null;
}

/**
 * Waits until `run` ends by itself: none of the command's processes is there at that moment, and none comes
 * later.
 */
async function endsClean(trial: Trial): Promise<Finished> {
  const { process: child } = trial.run;
  if (!hasEnded(trial)) await new Promise((resolve) => child.once("exit", resolve));
  expect(trial.command(), "of the command, when run has ended").toEqual([]);
  await sleep(LATER_MS);
  expect(trial.command(), "of the command, later").toEqual([]);
  return trial.run.finished;
}

/** A guard that is killed before the command starts is replaced by another, which is killed too. */
async function endsWithoutGuard(trial: Trial): Promise<Finished> {
  const killing = setInterval(() => {
    for (const pid of childrenOf(trial.run.pid)) signal(pid, "SIGKILL");
  }, 5);
  return endsClean(trial).finally(() => clearInterval(killing));
}

async function allGone(trial: Trial, withinMs: number): Promise<void> {
  await eventually(
    "the command and its guard are gone",
    () => !isAlive(trial.guard) && isGone(trial),
    withinMs,
  );
  await staysGone(trial);
}

/** A gate that was opening starts the command and then ends it, which is visible on a busy machine. */
async function staysGone(trial: Trial): Promise<void> {
  await sleep(LATER_MS);
  await eventually("the command is gone later, too", () => isGone(trial), SLACK_MS);
}

function isGone(trial: Trial): boolean {
  return trial.command().length === 0;
}

const saysItsEnd =
  /^leasehold: the guard of the command ended \(SIGKILL\)(?:, so the command was killed| before the command was started)\n$/;

const cases: Record<string, (trial: Trial, index: number) => Promise<void>> = {
  "the guard is killed": async (trial, index) => {
    await moment(trial, index);
    signal(trial.guard, "SIGKILL");
    const { code, stderr } = await endsWithoutGuard(trial);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(saysItsEnd) });
  },
  "run is killed": async (trial, index) => {
    await moment(trial, index);
    trial.run.process.kill("SIGKILL");
    await allGone(trial, TTL_MS / 4 + SLACK_MS);
  },
  "run and guard are killed": async (trial, index) => {
    await moment(trial, index);
    const both = index % 2 === 0 ? [trial.guard, trial.run.pid] : [trial.run.pid, trial.guard];
    for (const pid of both) signal(pid, "SIGKILL");
    await allGone(trial, SLACK_MS);
  },
  "run is stopped and the guard is killed": async (trial, index) => {
    await moment(trial, index);
    trial.run.process.kill("SIGSTOP");
    signal(trial.guard, "SIGKILL");
    await eventually("the command is gone", () => isGone(trial), SLACK_MS);
    await staysGone(trial);
    trial.run.process.kill("SIGCONT");
    const { code } = await endsWithoutGuard(trial);
    expect([1, 76]).toContain(code);
  },
  "the leader of the command's group is killed": async (trial, index) => {
    await moment(trial, index);
    await eventually("the gate is there", () => trial.gate());
    signal(trial.gate(), "SIGKILL");
    const { code } = await endsClean(trial);
    // 126 if the leader was killed before it could start the command.
    expect([137, 126]).toContain(code);
  },
  "the command is killed": async (trial, index) => {
    await working(trial);
    await moment(trial, index);
    for (const pid of trial.command()) signal(pid, "SIGKILL");
    expect((await endsClean(trial)).code).toBe(137);
  },
  "run is stopped": async (trial, index) => {
    await moment(trial, index);
    trial.run.process.kill("SIGSTOP");
    const atMs = Date.now();
    await eventually(
      "the command is gone",
      () => isGone(trial) && Date.now() > atMs + TTL_MS,
      TTL_MS + SLACK_MS,
    );
    trial.run.process.kill("SIGCONT");
    await eventually("run ends or begins", () => hasEnded(trial) || trial.command().length === 2, 20_000);
    // A run stopped before it had a lease gets one only now.
    if (!hasEnded(trial)) return;
    const { code, stderr } = await endsClean(trial);
    expect(code).toBe(76);
    expect(stderr).toMatch(/^leasehold: the lease on demo\/x .*\n$/);
  },
  "the guard is stopped, and later killed": async (trial, index) => {
    await moment(trial, index);
    signal(trial.guard, "SIGSTOP");
    await sleep(LATER_MS);
    signal(trial.guard, "SIGKILL");
    expect((await endsWithoutGuard(trial)).code).toBe(1);
  },
  "the leader of the command's group is stopped, and run is killed": async (trial, index) => {
    await moment(trial, index);
    await eventually("the gate is there", () => trial.gate());
    signal(trial.gate(), "SIGSTOP");
    trial.run.process.kill("SIGKILL");
    await allGone(trial, TTL_MS / 4 + SLACK_MS);
  },
};

async function sweep(build: string, name: string, tries = TRIES): Promise<void> {
  const attempt = cases[name] ?? (() => Promise.reject(new Error(name)));
  await severalAtOnce(tries, async (index) => {
    const trial = await start(build);
    try {
      await attempt(trial, index);
    } catch (error) {
      const said = trial.run.stderr();
      throw new Error(`moment ${index} of ${tries}: ${String(error)}; run said: ${said}`, { cause: error });
    } finally {
      for (const pid of [...trial.command(), trial.run.pid, trial.guard]) signal(pid, "SIGKILL");
    }
  });
}

async function severalAtOnce(count: number, attempt: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await attempt(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

describe.skipIf(process.platform !== "linux")("at whatever moment", () => {
  test.each(Object.keys(cases))("no command outlives its run when %s", { timeout: 600_000 }, async (name) => {
    await expect(sweep(dist, name)).resolves.toBeUndefined();
  });

  test(
    "run passes on the exit code of a command that ended while run was stopped",
    { timeout: 600_000 },
    async () => {
      const ends = new Set<string>();
      await severalAtOnce(TRIES, async (index) => {
        const trial = await start(dist, (name) => `sleep ${name}; exit 7`, "0.7");
        await eventually("the command works", () => trial.command().length === 1, 20_000);
        // From before the first renewal until the command ends.
        await sleep(spread(index) * 700);
        trial.run.process.kill("SIGSTOP");
        await eventually("the guard is gone", () => !isAlive(trial.guard));
        trial.run.process.kill("SIGCONT");
        const { code, stderr } = await trial.run.finished;
        ends.add(`${code} ${stderr.replace(/(lease on demo.x) .*/s, "$1")}`);
      });
      // Under load, run may have been stopped for too long, which it then reports.
      ends.delete("76 leasehold: the lease on demo/x");
      expect([...ends]).toEqual(["7 "]);
    },
  );
});

const SENDS_READY = ["send(this.#toRun, {", '\ttype: "ready",', "\tgroupId: gate.pid", "})"].join("\n\t\t");
const OPENS_AT_ONCE = [`${SENDS_READY};`, `this.#open(gate); setTimeout(() => ${SENDS_READY}, 30);`] as const;
const NO_SECOND_GUARD = ["read -r end <&3", "exec sleep 20"] as const;

describe.skipIf(process.platform !== "linux")("the sweep finds", () => {
  test.each([
    [
      "a command that starts before run knows its group",
      "the guard is killed",
      {
        "run/guard-process.js": [
          OPENS_AT_ONCE,
          ["this.#mayOpen && this.#progress", "false && this.#progress"],
        ],
        "run/gate.js": [NO_SECOND_GUARD],
      },
    ],
    [
      "a run that does not wait for the end of the command",
      "the guard is killed",
      {
        "run/guarded-command.js": [["processes.sweep() === undefined", "false"]],
        "run/gate.js": [NO_SECOND_GUARD],
      },
    ],
    [
      "a command that nobody ends when run is stopped and the guard is killed",
      "run is stopped and the guard is killed",
      { "run/gate.js": [NO_SECOND_GUARD] },
    ],
    [
      "a guard that follows the process group alone",
      "run is killed",
      { "run/process-group.js": [["stat.session === this.#groupId", "false"]] },
    ],
  ] as const)("%s", { timeout: 300_000 }, async (_title, name, changes) => {
    using build = new PlantedBuild(changes);
    await expect(sweep(build.dist, name, 200)).rejects.toThrow(
      /moment .*(?:of the command, |command is gone: not|guard are gone: not)/,
    );
  });
});
