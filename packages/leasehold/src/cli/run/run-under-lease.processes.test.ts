import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { childrenOf, eventually, guardPath, isAlive } from "../../../../../test/support/built.js";
import { LeaseLostError, LeaseholdError } from "../../lease/errors.js";
import type { AcquireOptions, Guarantees, Lease, Leases } from "../../lease/types.js";
import { exitCode } from "../common/exit-codes.js";
import { groupIsGone } from "./process-group.js";
import { type RunRequest, runUnderLease } from "./run-under-lease.js";
import { SignalRelay } from "./signal-relay.js";

/** A lease whose remaining time the test sets by hand. */
class FakeLease {
  readonly resource = "demo/x";
  readonly holder = "me/1";
  readonly token = 7n;
  readonly #abort = new AbortController();
  readonly signal = this.#abort.signal;
  readonly #requests = new AbortController();
  readonly releaseRequested = this.#requests.signal;
  endMs: number;
  /** Registers a listener, like `on("renewed")`. */
  readonly heard = new Set<(event: { readonly lease: Lease }) => void>();
  releasedAtMs: number | undefined;
  /** Called when the lease is released. */
  atRelease: () => void = () => undefined;

  readonly ttlMs: number;

  constructor(ttlMs: number) {
    this.ttlMs = ttlMs;
    this.endMs = performance.now() + ttlMs;
  }

  remaining(): number {
    return Math.max(0, this.endMs - performance.now());
  }

  ask(): void {
    this.#requests.abort(new LeaseholdError("RELEASE_REQUESTED", "ada asks for it"));
  }

  /** Simulates a renewal, of which this process is notified at once. */
  renew(): void {
    this.endMs = performance.now() + this.ttlMs;
    for (const run of this.heard) run({ lease: this as unknown as Lease });
  }

  lose(): void {
    this.endMs = 0;
    this.#abort.abort(new LeaseLostError(this.resource, "clock-fault"));
  }

  release(): Promise<void> {
    this.releasedAtMs ??= performance.now();
    this.atRelease();
    return Promise.resolve();
  }
}

let folder: string;
let said: string[];
let lease: FakeLease;
/** The outcome of the last `run`. */
let running: Promise<number>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-run-"));
  said = [];
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function fakeLeases(acquire?: (options?: AcquireOptions) => Promise<Lease>): Leases {
  const guarantees = { ttlMinMs: 100, ttlMaxMs: 60_000 } as Guarantees;
  const granted = (options?: AcquireOptions): Promise<Lease> => {
    lease = new FakeLease(Number(options?.ttl));
    return Promise.resolve(lease as unknown as Lease);
  };
  const holder = () => Promise.resolve({ state: "held", holder: "other/9", token: 3n, remainingMs: 2_000 });
  const fake = {
    guarantees,
    acquire: (_name: string, options?: AcquireOptions) => (acquire ?? granted)(options),
    holder,
    on: (_event: string, run: (event: { readonly lease: Lease }) => void) => {
      lease.heard.add(run);
      return () => lease.heard.delete(run);
    },
  };
  return fake as unknown as Leases;
}

function requestOf(script: string, more: Partial<RunRequest> = {}): RunRequest {
  return {
    resource: "demo/x",
    command: "/bin/sh",
    // Keeps a shell's messages about killed children out of the tests' output.
    args: ["-c", `exec 2>/dev/null; ${script}`],
    ttl: 10_000,
    conflictExitCode: exitCode("conflict"),
    lostExitCode: exitCode("lost"),
    guardPath,
    print: (message: string) => said.push(message),
    ...more,
  };
}

function start(script: string, more: Partial<RunRequest> = {}, leases = fakeLeases()): Promise<number> {
  const request = requestOf(script, more);
  const signals = new SignalRelay();
  return run(request, signals, leases).finally(() => signals[Symbol.dispose]());
}

function run(request: RunRequest, signals: SignalRelay, leases = fakeLeases()): Promise<number> {
  running = runUnderLease(leases, request, signals).catch(signals.caught);
  return running;
}

/**
 * Shell code that writes its own process id, which is also its group's, to the place where {@link startedPid}
 * finds it.
 */
const announce = (): string => `echo $$ > ${folder}/new; mv ${folder}/new ${folder}/pid;`;
const IGNORE_TERM = "trap '' TERM; ";
const FOR_EVER = "while :; do sleep 0.05; done";

/** On a busy machine a short lease may be over before its command has started. */
function startedPid(): Promise<number> {
  let isOver = false;
  const over = (): void => void (isOver = true);
  running.then(over, over);
  return eventually("the command starts", () => {
    const wasOver = isOver;
    try {
      return Number(readFileSync(join(folder, "pid"), "utf8"));
    } catch {
      if (wasOver) throw new Error("the lease was over before its command had started");
      return undefined;
    }
  });
}

test("a guard that starts later than the first lease lasts runs the command under the renewed one", async () => {
  const ttl = 3_000;
  const slow = join(folder, "slow-guard.mjs");
  // As on a very busy machine: all messages of `run` wait in the pipe meanwhile.
  const wait = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ttl + 500});`;
  writeFileSync(slow, `${wait} await import(${JSON.stringify(guardPath)});`);
  const ended = start("exit 5", { guardPath: slow, ttl });
  await vi.waitUntil(() => lease !== undefined);
  const renewing = setInterval(() => (lease.endMs = performance.now() + ttl), 100);
  expect(await ended.finally(() => clearInterval(renewing))).toBe(5);
  expect(said).toEqual([]);
});

test("a command is not started when its guard starts after the end of a lease without renewal", async () => {
  const ttl = 1_000;
  const slow = join(folder, "slow-guard.mjs");
  const wait = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ttl + 500});`;
  writeFileSync(slow, `${wait} await import(${JSON.stringify(guardPath)});`);
  expect(await start(`${announce()} exit 5`, { guardPath: slow, ttl })).toBe(exitCode("lost"));
  expect(existsSync(join(folder, "pid"))).toBe(false);
});

describe("the exit code", () => {
  test("is the command's own, and the lease is released", async () => {
    expect(await start("exit 7")).toBe(7);
    expect(lease.releasedAtMs).toBeDefined();
    expect(said).toEqual([]);
  });

  test("is 128 and the signal that ended the command", async () => {
    expect(await start("kill -KILL $$")).toBe(137);
  });

  test("reports that there is no such command, or that it cannot be executed", async () => {
    expect(await start("", { command: "/nonexistent/command" })).toBe(exitCode("notFound"));
    const text = join(folder, "text");
    writeFileSync(text, "", { mode: 0o644 });
    expect(await start("", { command: text })).toBe(exitCode("notExecutable"));
    expect(said).toEqual(["/nonexistent/command: command not found", `${text}: permission denied`]);
  });

  test("reports that another holds the lease, and the message names the holder", async () => {
    const held = fakeLeases(() => Promise.reject(new LeaseholdError("LEASE_HELD")));
    await expect(start("exit 0", { wait: 0 }, held)).rejects.toMatchObject({
      exitCode: 75,
      message: "demo/x: held by other/9, 2.0 s left unless renewed",
    });
    const late = fakeLeases(() => Promise.reject(new LeaseholdError("TIMEOUT")));
    await expect(start("exit 0", { conflictExitCode: 9 }, late)).rejects.toMatchObject({ exitCode: 9 });
  });

  test("reports why no caller can acquire it", async () => {
    const late = fakeLeases(() => Promise.reject(new LeaseholdError("TIMEOUT")));
    const reasons = ["nobody can say who holds it", "a is recovering and takes part in 1m"];
    Object.assign(late, {
      holder: () => Promise.resolve({ state: "unknown" }),
      explain: () => Promise.resolve({ state: "unknown", quorum: false, reasons }),
    });
    await expect(start("exit 0", {}, late)).rejects.toMatchObject({
      exitCode: 69,
      message: `demo/x: its turn did not come in time; ${reasons.join("; ")}`,
    });
  });

  test("a fault that is no conflict keeps its own code", async () => {
    const silent = fakeLeases(() => Promise.reject(new LeaseholdError("NO_QUORUM")));
    await expect(start("exit 0", {}, silent)).rejects.toMatchObject({ code: "NO_QUORUM" });
  });
});

test("the command has the name, the token and the deadline of its lease in its environment", async () => {
  const earliest = Date.now();
  await start(`echo $LEASE_NAME $LEASE_TOKEN $LEASE_DEADLINE_MS > ${folder}/env`);
  const [name, token, deadline] = readFileSync(join(folder, "env"), "utf8").trim().split(" ");
  expect([name, token]).toEqual(["demo/x", "7"]);
  expect(Number(deadline)).toBeGreaterThan(earliest + 9_900);
  expect(Number(deadline)).toBeLessThanOrEqual(Date.now() + 10_000);
});

test("remaining processes of the command's group are gone before the lease is released", async () => {
  const ending = start(`${announce()} ${IGNORE_TERM} (${FOR_EVER}) & exit 3`);
  const group = await startedPid();
  let goneAtRelease: boolean | undefined;
  lease.atRelease = () => (goneAtRelease = groupIsGone(group));
  expect(await ending).toBe(3);
  expect(goneAtRelease).toBe(true);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)(
  "%s reaches the command, which decides",
  async (signal) => {
    const name = signal.slice(3);
    const ending = start(`trap 'exit 42' ${name}; ${announce()} ${FOR_EVER}`);
    await startedPid();
    process.kill(process.pid, signal);
    expect(await ending).toBe(42);
  },
);

test.each([true, false])(
  "a request for the lease is printed, and the command is asked to end only with --yield (here: %s)",
  async (yields) => {
    const ending = start(`trap 'exit 42' TERM; ${announce()} sleep 0.3; exit 0`, { yields });
    await startedPid();
    lease.ask();
    expect(await ending).toBe(yields ? 42 : 0);
    expect(said).toEqual([yields ? "ada asks for it: the command is asked to end" : "ada asks for it"]);
  },
);

test("a signal during the wait ends it, and nothing is started", async () => {
  const waiting = fakeLeases(
    (options) =>
      new Promise((_resolve, reject) => {
        options?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
      }),
  );
  const ending = start(`${announce()}`, {}, waiting);
  process.kill(process.pid, "SIGUSR1");
  process.kill(process.pid, "SIGTERM");
  expect(await ending).toBe(143);
});

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
  // A command may use these signals for something other than its end.
  ["SIGHUP", 0],
  ["SIGQUIT", 0],
] as const)(
  "%s that meets the loss of the lease: another term begins only if it did not ask to end",
  async (signal, code) => {
    using signals = new SignalRelay();
    const first = run(requestOf(`trap '' ${signal.slice(3)}; ${announce()} ${FOR_EVER}`), signals);
    await startedPid();
    process.kill(process.pid, signal);
    await eventually("the signal is here", () => signals.exitCode !== undefined);
    lease.lose();
    expect(await first).toBe(76);
    expect(await run(requestOf("exit 0"), signals)).toBe(code);
  },
);

describe("when the lease ends first", () => {
  test("a lost lease kills the command at once", async () => {
    const ending = start(`${IGNORE_TERM} ${announce()} ${FOR_EVER}`);
    const pid = await startedPid();
    lease.lose();
    expect(await ending).toBe(76);
    expect(isAlive(pid)).toBe(false);
    expect(said.join()).toContain("lost");
  });

  test("a lost lease kills the command at once also when the guard has been stopped", async () => {
    const before = childrenOf(process.pid);
    const ending = start(`${IGNORE_TERM} ${announce()} ${FOR_EVER}`);
    const pid = await startedPid();
    const guard = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
    process.kill(guard, "SIGSTOP");
    lease.lose();
    await eventually("the command is gone", () => !isAlive(pid), 500);
    expect(await ending).toBe(76);
    expect(isAlive(guard)).toBe(false);
  });

  test("a lease that is not renewed ends the command with SIGTERM before its deadline", async () => {
    const ending = start(`trap 'echo told > ${folder}/told; exit 0' TERM; ${announce()} ${FOR_EVER}`, {
      ttl: 4_000,
    });
    await startedPid();
    let leftMs = 0;
    lease.atRelease = () => (leftMs = lease.remaining());
    expect(await ending).toBe(76);
    expect(readFileSync(join(folder, "told"), "utf8")).toBe("told\n");
    expect(leftMs).toBeGreaterThan(0);
  });

  test("a stall of the process is printed as the reason of a failed renewal", async () => {
    const ending = start(`${announce()} ${FOR_EVER}`, { ttl: 6_000 });
    await startedPid();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    expect(await ending).toBe(76);
    expect(said.join()).toMatch(/renewed in time: this machine was too busy, run itself stood still for /);
  });

  test("a lease that is not renewed ends a command that ignores SIGTERM with SIGKILL before its deadline", async () => {
    const ending = start(`${IGNORE_TERM} ${announce()} ${FOR_EVER}`, { ttl: 2_000, lostExitCode: 8 });
    const group = await startedPid();
    await eventually("the command is gone", () => groupIsGone(group));
    expect(lease.remaining()).toBeGreaterThan(0);
    expect(await ending).toBe(8);
  });

  test("a system clock that was set back moves the deadline that the guard knows, without a renewal", async () => {
    const ending = start(`${announce()} sleep 3; exit 5`);
    await startedPid();
    const wallMs = Date.now;
    using _setBack = vi.spyOn(Date, "now").mockImplementation(() => wallMs() - 20_000);
    // The guard's clock was not changed, so it sees a deadline that has passed.
    expect(await ending).toBe(76);
  });

  test("the guard learns of a renewal in the turn in which it is confirmed", async () => {
    const ending = start(`${announce()} sleep 5; exit 5`, { ttl: 6_000 });
    await startedPid();
    await sleep(2_500);
    lease.renew();
    // While this process is blocked, the guard keeps its last deadline.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
    expect(await ending).toBe(5);
  });

  test("a guard that was stopped uses the deadline that has arrived meanwhile", async () => {
    const before = childrenOf(process.pid);
    const ending = start(`${announce()} sleep 8; exit 5`, { ttl: 6_000 });
    await startedPid();
    const guard = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
    process.kill(guard, "SIGSTOP");
    lease.endMs = performance.now() + 20_000;
    // This is past the deadline that the guard knows.
    await sleep(6_100);
    process.kill(guard, "SIGCONT");
    expect(await ending).toBe(5);
  });

  test("a renewed lease lets the command continue", async () => {
    const ended = start("sleep 1.5; exit 5", { ttl: 1_000 });
    await vi.waitUntil(() => lease !== undefined);
    const renewing = setInterval(() => (lease.endMs = performance.now() + 1_000), 50);
    expect(await ended.finally(() => clearInterval(renewing))).toBe(5);
  });
});

test("a command that ended in time has its own exit code, also when it is read after the end of the lease", async () => {
  const ending = start(`${announce()} sleep 0.1; exit 5`, { ttl: 4_000 });
  await startedPid();
  // Simulates that this process is stopped for this time.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_200);
  expect(lease.remaining()).toBe(0);
  expect(await ending).toBe(5);
});

describe("what is refused before anything starts", () => {
  test("a time to end that is not less than half the ttl is refused with both numbers", async () => {
    await expect(start("exit 0", { killAfter: "5s", ttl: "10s" })).rejects.toThrow(
      "--kill-after 5s must be less than half of the lease's ttl of 10s: less than 5s",
    );
  });

  test("a ttl that the cluster does not allow is refused", async () => {
    await expect(start("exit 0", { ttl: "2m" })).rejects.toThrow(
      "--ttl 2m is outside what the cluster allows",
    );
  });
});
