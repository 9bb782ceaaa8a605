import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Running, childrenOf, eventually, isAlive, leasehold } from "../../../test/support/built.js";

/**
 * What happens to the command when `run`, or its guard, is killed or stopped: only real processes can tell.
 * The lease is one of an in-memory provider inside the process of `run`.
 */

const TTL_MS = 3_000;
/** The default for that ttl. */
const KILL_AFTER_MS = TTL_MS / 4;
/** For a machine that is busy. */
const SLACK_MS = 500;
/** The command does not listen to SIGTERM, and has a child of its own in the same group. */
const STUBBORN = (folder: string): string =>
  `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $$ $! $LEASE_DEADLINE_MS > ${folder}/new; ` +
  `mv ${folder}/new ${folder}/facts; while :; do sleep 0.05; done`;

let folder: string;
let running: Running[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-guard-"));
  running = [];
});

afterEach(() => {
  for (const { process: child } of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

interface Facts {
  readonly run: Running;
  readonly pid: number;
  readonly grandchild: number;
  readonly deadlineMs: number;
}

async function startStubborn(...options: string[]): Promise<Facts> {
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

/** The guard is the one child of `run`. */
function guardOf(run: Running): number {
  const [guard] = childrenOf(run.pid);
  if (guard === undefined) throw new Error("run has no child");
  return guard;
}

async function goneAtMs({ pid, grandchild }: Facts): Promise<number> {
  await eventually("the command and its child are gone", () => !isAlive(pid) && !isAlive(grandchild));
  return Date.now();
}

describe.skipIf(process.platform !== "linux")("the command is gone before the lease can pass on", () => {
  test("when run is killed", async () => {
    const facts = await startStubborn();
    facts.run.process.kill("SIGKILL");
    const killedAtMs = Date.now();
    const goneMs = await goneAtMs(facts);
    expect(goneMs).toBeLessThan(facts.deadlineMs);
    // The pipe's end is enough: the guard does not wait until the deadline comes close.
    expect(goneMs).toBeLessThan(killedAtMs + KILL_AFTER_MS + SLACK_MS);
    expect(goneMs).toBeGreaterThanOrEqual(killedAtMs + KILL_AFTER_MS - SLACK_MS);
  });

  test("when run is killed at its latest: the time to end does not go beyond the deadline", async () => {
    const facts = await startStubborn("--kill-after", "1400ms");
    const guard = guardOf(facts.run);
    facts.run.process.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, facts.deadlineMs - Date.now() - 1_000));
    facts.run.process.kill("SIGKILL");
    expect(await goneAtMs(facts)).toBeLessThan(facts.deadlineMs);
    await eventually("the guard is gone too", () => !isAlive(guard));
  });

  test("when run is stopped; and it says so when it goes on", async () => {
    const facts = await startStubborn();
    facts.run.process.kill("SIGSTOP");
    const stoppedAtMs = Date.now();
    const goneMs = await goneAtMs(facts);
    // It was stopped within the lease's first third, before any renewal, or in a later one on a very slow machine.
    expect(goneMs).toBeLessThan(Math.max(facts.deadlineMs, stoppedAtMs + TTL_MS));
    expect(goneMs).toBeGreaterThan(facts.deadlineMs - TTL_MS / 2);
    facts.run.process.kill("SIGCONT");
    const { code, stderr } = await facts.run.finished;
    expect(code).toBe(76);
    expect(stderr).toMatch(/^leasehold: the lease on demo\/x .*\n$/);
  });

  test("when the guard is killed", async () => {
    const facts = await startStubborn();
    process.kill(guardOf(facts.run), "SIGKILL");
    expect(await goneAtMs(facts)).toBeLessThan(facts.deadlineMs);
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
