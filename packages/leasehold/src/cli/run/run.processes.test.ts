import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  type Finished,
  type Running,
  childrenOf,
  eventually,
  isAlive,
  leasehold,
  mainPath,
} from "../../../../../test/support/built.js";

/**
 * What happens to the command if `run` or its guard is killed or stopped, which only real processes can show.
 * The lease comes from an in-memory provider inside the process of `run`.
 */

const TTL_MS = 3_000;
/** The default for this TTL. */
const KILL_AFTER_MS = TTL_MS / 4;
/** Allows for a busy machine. */
const SLACK_MS = 500;
/** Many start at once, and each consists of three processes. */
const START_MS_MAX = 20_000;
/** The command ignores SIGTERM, and has a child in the same group. */
const STUBBORN = (folder: string): string =>
  `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $$ $! $LEASE_DEADLINE_MS > ${folder}/new; ` +
  `mv ${folder}/new ${folder}/facts; while :; do sleep 0.05; done`;

const folders: string[] = [];
const running: Running[] = [];

afterAll(() => {
  for (const { process: child } of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Facts {
  readonly run: Running;
  readonly pid: number;
  readonly grandchild: number;
  readonly deadlineMs: number;
}

async function startStubborn(...options: string[]): Promise<Facts> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-guard-"));
  folders.push(folder);
  const words = ["run", "demo/x", "--endpoints", "memory:", "--ttl", `${TTL_MS}ms`, ...options];
  const run = leasehold([...words, "--", "/bin/sh", "-c", STUBBORN(folder)]);
  running.push(run);
  const text = await eventually("the command starts", () => read(join(folder, "facts")));
  const [pid = 0, grandchild = 0, deadlineMs = 0] = text.trim().split(" ").map(Number);
  return { run, pid, grandchild, deadlineMs };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** The guard is the only child of `run`. */
function guardOf(run: Running): number {
  const [guard] = childrenOf(run.pid);
  if (guard === undefined) throw new Error("run has no child");
  return guard;
}

/**
 * The latest possible end of the lease of a `run` that was stopped or killed at this time; exact before the
 * first renewal. After a slow acquisition the first renewal comes before a third of the TTL, but not before a
 * twelfth.
 */
function endMs({ deadlineMs }: Facts, atMs: number): number {
  const mayBeRenewed = atMs > deadlineMs - (TTL_MS * 11) / 12;
  return mayBeRenewed ? atMs + TTL_MS : deadlineMs;
}

async function goneAtMs({ pid, grandchild }: Facts): Promise<number> {
  await eventually("the command and its child are gone", () => !isAlive(pid) && !isAlive(grandchild));
  return Date.now();
}

/** Concurrently, as each of them mostly waits for a lease to approach its end. */
describe
  .skipIf(process.platform !== "linux")
  .concurrent("the command is gone before the lease can pass on", () => {
    test("when run is killed", async ({ expect }) => {
      const facts = await startStubborn();
      facts.run.process.kill("SIGKILL");
      const killedAtMs = Date.now();
      const goneMs = await goneAtMs(facts);
      expect(goneMs).toBeLessThan(endMs(facts, killedAtMs));
      // The end of the pipe is enough: the guard does not wait for the deadline.
      expect(goneMs).toBeLessThan(killedAtMs + KILL_AFTER_MS + SLACK_MS);
      expect(goneMs).toBeGreaterThanOrEqual(killedAtMs + KILL_AFTER_MS - SLACK_MS);
    });

    test("when run is killed late: the time to end does not exceed the deadline", async ({ expect }) => {
      const facts = await startStubborn("--kill-after", "1400ms");
      const guard = guardOf(facts.run);
      facts.run.process.kill("SIGSTOP");
      const end = endMs(facts, Date.now());
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, end - Date.now() - 1_000)));
      facts.run.process.kill("SIGKILL");
      expect(await goneAtMs(facts)).toBeLessThan(end);
      await eventually("the guard is gone too", () => !isAlive(guard));
    });

    test("when run is stopped, which it reports when it continues", async ({ expect }) => {
      const facts = await startStubborn();
      facts.run.process.kill("SIGSTOP");
      const end = endMs(facts, Date.now());
      const goneMs = await goneAtMs(facts);
      expect(goneMs).toBeLessThan(end);
      expect(goneMs).toBeGreaterThan(facts.deadlineMs - TTL_MS / 2);
      facts.run.process.kill("SIGCONT");
      const { code, stderr } = await facts.run.finished;
      expect(code).toBe(76);
      expect(stderr).toMatch(/^leasehold: the lease on demo\/x .*\n$/);
    });

    test("when the guard is killed", async ({ expect }) => {
      const facts = await startStubborn();
      process.kill(guardOf(facts.run), "SIGKILL");
      const killedAtMs = Date.now();
      expect(await goneAtMs(facts)).toBeLessThan(killedAtMs + SLACK_MS);
      const { code, stderr } = await facts.run.finished;
      expect(code).toBe(1);
      expect(stderr).toBe("leasehold: the guard of the command ended (SIGKILL), so the command was killed\n");
    });
  });

test("the command has the terminal's input and outputs", async () => {
  const run = leasehold(
    ["run", "demo/x", "--endpoints", "memory:", "--", "sh", "-c", "cat; echo problem >&2"],
    {
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  run.process.stdin?.end("through\n");
  expect(await run.finished).toEqual({ code: 0, signal: null, stdout: "through\n", stderr: "problem\n" });
});

/** Runs a shell script with `leasehold run` and a lease in memory. */
function runScript(script: string): Promise<Finished> {
  const run = leasehold(["run", "demo/x", "--endpoints", "memory:", "--", "/bin/sh", "-c", script]);
  running.push(run);
  return run.finished;
}

/** The processes that sleep for exactly this many seconds. */
function sleepers(seconds: string): number[] {
  const commandLine = `sleep\0${seconds}\0`;
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && read(`/proc/${entry}/cmdline`) === commandLine)
    .map(Number)
    .filter(isAlive);
}

/**
 * Starts `leasehold` through a shell, because bytes that are not UTF-8 cannot be passed from here. The output
 * is read as latin1.
 */
async function printedBy(script: string): Promise<string> {
  const env = { ...process.env, NODE: process.execPath, MAIN: mainPath };
  const child = spawn("/bin/sh", ["-c", script], { env, stdio: ["ignore", "pipe", "inherit"] });
  const chunks = await child.stdout.toArray();
  return Buffer.concat(chunks as Buffer[]).toString("latin1");
}

describe.skipIf(process.platform !== "linux").concurrent("on Linux", () => {
  test("a death by a real-time signal is 128 and its number, not success", async ({ expect }) => {
    expect((await runScript("kill -37 $$")).code).toBe(165);
  });

  test("a command that kills its parent ends, and so does run", async ({ expect }) => {
    const { code } = await runScript("kill -KILL $PPID; exec sleep 300");
    expect(code).toBe(137);
  });

  test.each([
    ["timeout takes out of the process group", "timeout 300 sleep 300.71 & exit 3", "300.71"],
    ["is a job of set -m", "exec bash -c 'set -m; sleep 300.72 & exit 3'", "300.72"],
  ])("what %s is gone when the command is", async (_what, script, seconds) => {
    expect(await runScript(script)).toMatchObject({ code: 3, stderr: "" });
    expect(sleepers(seconds)).toEqual([]);
  });

  test("a daemon runs on, and run names it", async ({ expect }) => {
    const script =
      "setsid sleep 300.73 >/dev/null 2>&1 & until grep -qa ^sleep /proc/$!/cmdline; do sleep 0.05; done; echo $!; exit 3";
    const { code, stdout, stderr } = await runScript(script);
    const pid = Number(stdout);
    expect(isAlive(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
    expect(code).toBe(3);
    expect(stderr).toBe(
      `leasehold: started by the command and left alone, as it moved to a session of its own: sleep (${pid}); it goes on without the lease\n`,
    );
  });

  test("a run within the command has ended its own command, too", async ({ expect }) => {
    const inner = `"${process.execPath}" "${mainPath}" run demo/y --endpoints memory: -- sleep 300.74`;
    const folder = mkdtempSync(join(tmpdir(), "leasehold-guard-"));
    folders.push(folder);
    const outer = runScript(`${inner} & echo $$ > ${folder}/new; mv ${folder}/new ${folder}/pid; wait`);
    const pid = await eventually("the outer command starts", () => read(join(folder, "pid")), START_MS_MAX);
    await eventually("the inner command starts", () => sleepers("300.74").length > 0, START_MS_MAX);
    process.kill(Number(pid), "SIGKILL");
    expect((await outer).code).toBe(137);
    expect(sleepers("300.74")).toEqual([]);
  });

  test("bytes that are not UTF-8, or that a shell would drop, reach the command unchanged", async ({
    expect,
  }) => {
    const run = `"$NODE" "$MAIN" run demo/x --endpoints memory: --`;
    const words = `"$(printf '\\377')" "it's" '' "$(printf 'a\\nb')"`;
    expect(await printedBy(`${run} printf '%s|' ${words}`)).toBe("\xff|it's||a\nb|");
    const variables = `env "a.b=$(printf '1\\n2')" "LATIN=$(printf 'caf\\351')"`;
    expect(await printedBy(`${variables} ${run} printenv a.b LATIN`)).toBe("1\n2\ncaf\xe9\n");
  });

  test("a name that is not UTF-8 is refused by every command", async ({ expect }) => {
    const run = `"$NODE" "$MAIN" run "$(printf 'a\\377')" --endpoints memory: -- echo ran`;
    const get = `"$NODE" "$MAIN" get "$(printf 'a\\377')" --endpoints memory:`;
    expect(await printedBy(`exec 2>&1; ${run}; echo $?; ${get}; echo $?`)).toBe(
      "leasehold: argument 2 is no valid UTF-8\n2\n".repeat(2),
    );
  });

  test.each([
    ["ends the command", [], "300.75", 129],
    ["does not end it behind nohup", ["nohup"], "300.76", 9],
  ] as const)("a hang-up %s", async (_what, before, seconds, code) => {
    const words = [...before, "/bin/sh", "-c", `sleep ${seconds}; exit 9`];
    const run = leasehold(["run", "demo/x", "--endpoints", "memory:", "--", ...words]);
    running.push(run);
    const sleeper = await eventually("it sleeps", () => sleepers(seconds)[0], START_MS_MAX);
    run.process.kill("SIGHUP");
    // The time that a hang-up takes through two processes, with a margin.
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (isAlive(sleeper)) process.kill(sleeper, "SIGTERM");
    expect((await run.finished).code).toBe(code);
  });

  test("a signal that comes while the command starts reaches it", async ({ expect }) => {
    const words = ["run", "demo/x", "--endpoints", "memory:", "--", "/bin/sh", "-c", "sleep 0.3; exit 9"];
    const codes = new Set<number | null>();
    for (let index = 0; index < 3; index += 1) {
      const run = leasehold(words);
      running.push(run);
      await eventually("the guard is there", () => childrenOf(run.pid)[0]);
      await new Promise((resolve) => setTimeout(resolve, index * 25));
      run.process.kill("SIGTERM");
      codes.add((await run.finished).code);
    }
    expect([...codes]).toEqual([143]);
  });
});
