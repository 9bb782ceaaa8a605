import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { childrenOf, eventually, guardPath } from "../../../../../test/support/built.js";
import { GuardStarter } from "./guard-starter.js";
import { GuardedCommand } from "./guarded-command.js";
import { now } from "./guard-link.js";
import type { Deadline } from "./guard-policy.js";

function deadlineIn(ms: number): Deadline {
  const { monotonicMs, wallMs } = now();
  return { monotonicMs: monotonicMs + ms, wallMs: wallMs + ms };
}

test.skipIf(process.platform !== "linux")(
  "a command whose variables are too long for the system is not started, and the guard reports it",
  async () => {
    const command = new GuardedCommand({
      bytes: { words: ["true"], variables: [] },
      env: { LONG: "x".repeat(200_000) },
      deadline: deadlineIn(10_000),
      limits: { killAfterMs: 1_000, killMarginMs: 500, startMs: 5_000 },
      guardPath,
    });
    expect(await command.ended).toMatchObject({ kind: "not-started", code: "E2BIG" });
  },
);

test.skipIf(process.platform !== "linux")(
  "a command that could not start near the deadline starts when the deadline is moved",
  async () => {
    const before = childrenOf(process.pid);
    const command = new GuardedCommand({
      bytes: { words: ["true"], variables: [] },
      env: {},
      deadline: deadlineIn(20_000),
      // Too close to start a command, which could not be ended in time.
      limits: { killAfterMs: 30_000, killMarginMs: 500, startMs: 0 },
      guardPath,
    });
    const guard = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
    await eventually("the gate is there", () => childrenOf(guard).length > 0);
    // Meanwhile both know the group.
    await sleep(500);
    command.moveDeadline(deadlineIn(60_000));
    expect(await command.ended).toMatchObject({ kind: "ended", code: 0 });
  },
);

test.skipIf(process.platform !== "linux")(
  "a command waits for a renewal when less than half of the lease is left",
  async () => {
    const before = childrenOf(process.pid);
    const command = new GuardedCommand({
      bytes: { words: ["true"], variables: [] },
      env: {},
      deadline: deadlineIn(20_000),
      limits: { killAfterMs: 1_000, killMarginMs: 500, startMs: 60_000 },
      guardPath,
    });
    const guard = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
    await eventually("the gate is there", () => childrenOf(guard).length > 0);
    await sleep(500);
    expect(childrenOf(guard)).toHaveLength(1);
    command.moveDeadline(deadlineIn(30_000));
    expect(await command.ended).toMatchObject({ kind: "ended", code: 0 });
  },
);

test.skipIf(process.platform !== "linux").each([false, true])(
  "a command gets the guard that was started early, or another when that was ended (here: %s)",
  async (isEnded) => {
    const before = childrenOf(process.pid);
    using guards = new GuardStarter(guardPath);
    const early = childrenOf(process.pid).find((child) => !before.includes(child));
    // Its process continues for a while.
    if (isEnded) guards[Symbol.dispose]();
    const command = new GuardedCommand({
      bytes: { words: ["true"], variables: [] },
      env: {},
      deadline: deadlineIn(20_000),
      limits: { killAfterMs: 1_000, killMarginMs: 500, startMs: 5_000 },
      guards,
    });
    const guarding = childrenOf(process.pid).filter((child) => child !== early && !before.includes(child));
    expect(guarding).toHaveLength(isEnded ? 1 : 0);
    expect(await command.ended).toMatchObject({ kind: "ended", code: 0 });
  },
);

test.skipIf(process.platform !== "linux")(
  "the command has NODE_EXTRA_CA_CERTS, and its guard starts without it",
  async () => {
    const before = childrenOf(process.pid);
    vi.stubEnv("NODE_EXTRA_CA_CERTS", "/dev/null");
    onTestFinished(() => void vi.unstubAllEnvs());
    const command = new GuardedCommand({
      bytes: { words: ["sh", "-c", 'test "$NODE_EXTRA_CA_CERTS" = /dev/null'], variables: [] },
      env: {},
      deadline: deadlineIn(20_000),
      limits: { killAfterMs: 1_000, killMarginMs: 500, startMs: 5_000 },
      guardPath,
    });
    const guard = childrenOf(process.pid).find((child) => !before.includes(child)) ?? 0;
    const environment = await eventually("the guard has been executed", () => {
      const text = readFileSync(`/proc/${guard}/environ`, "utf8");
      return text.includes("LEASE_RUN=") && text;
    });
    expect(environment).not.toContain("NODE_EXTRA_CA_CERTS");
    expect(await command.ended).toMatchObject({ kind: "ended", code: 0 });
  },
);
