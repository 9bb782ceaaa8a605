import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
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

/** The guard is the one child of `run`. */
function guardOf(run: Running): number {
  const [guard] = childrenOf(run.pid);
  if (guard === undefined) throw new Error("run has no child");
  return guard;
}

/** When the lease of a `run` that was stopped or killed at a time is over at the latest: before a renewal, exactly. */
function endMs({ deadlineMs }: Facts, atMs: number): number {
  const mayBeRenewed = atMs > deadlineMs - (TTL_MS * 2) / 3;
  return mayBeRenewed ? atMs + TTL_MS : deadlineMs;
}

async function goneAtMs({ pid, grandchild }: Facts): Promise<number> {
  await eventually("the command and its child are gone", () => !isAlive(pid) && !isAlive(grandchild));
  return Date.now();
}

/** At once, as each of them mostly waits for a lease to come near its end. */
describe
  .skipIf(process.platform !== "linux")
  .concurrent("the command is gone before the lease can pass on", () => {
    test("when run is killed", async ({ expect }) => {
      const facts = await startStubborn();
      facts.run.process.kill("SIGKILL");
      const killedAtMs = Date.now();
      const goneMs = await goneAtMs(facts);
      expect(goneMs).toBeLessThan(endMs(facts, killedAtMs));
      // The pipe's end is enough: the guard does not wait until the deadline comes close.
      expect(goneMs).toBeLessThan(killedAtMs + KILL_AFTER_MS + SLACK_MS);
      expect(goneMs).toBeGreaterThanOrEqual(killedAtMs + KILL_AFTER_MS - SLACK_MS);
    });

    test("when run is killed late: the time to end does not go beyond the deadline", async ({ expect }) => {
      const facts = await startStubborn("--kill-after", "1400ms");
      const guard = guardOf(facts.run);
      facts.run.process.kill("SIGSTOP");
      const end = endMs(facts, Date.now());
      await new Promise((resolve) => setTimeout(resolve, end - Date.now() - 1_000));
      facts.run.process.kill("SIGKILL");
      expect(await goneAtMs(facts)).toBeLessThan(end);
      await eventually("the guard is gone too", () => !isAlive(guard));
    });

    test("when run is stopped; and it says so when it goes on", async ({ expect }) => {
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
