import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { Arena, expectClean, random, recoveryMs, report, ttlMs } from "./arena.js";

/** Processes that die without warning, and come back with nothing remembered. */

let arena: Arena;
afterEach(() => arena.close());

/** How late a busy machine may run everything. */
const noiseMs = 1_000;

describe("kill -9", () => {
  test("of a holder lets another take over as soon as the lease has expired", async () => {
    arena = await Arena.start();
    const resources = ["one"];
    arena.addHolders(4, { resources, holdMs: [1_500, 4_000] });
    for (let kills = 0; kills < 5; kills++) {
      const holder = await arena.holderOf("one");
      await sleep(random(0, 1.5 * ttlMs));
      if (!holder.holding.has("one")) continue;
      arena.kill(holder.pid);
      arena.addHolder({ resources, holdMs: [1_500, 4_000] });
      await arena.holderOf("one", 3 * ttlMs);
    }
    const takeoverMsMax = await arena.takeoverMsMax();
    const history = await arena.judge();
    expectClean(history);
    const kills = history.faults.find(({ kind }) => kind === "killed")!;
    report(
      `without a holder after ${kills.interrupted} kills: at most ${kills.longestMs?.toFixed()} ms; promised: at most ${takeoverMsMax.toFixed()} ms`,
    );
    expect(kills.interrupted).toBeGreaterThan(1);
    expect(kills.longestMs).toBeLessThan(takeoverMsMax + noiseMs);
  });

  test("of a minority of members again and again costs no holder its lease", async () => {
    arena = await Arena.start();
    arena.addHolders(2, { resources: ["kept"], holdMs: [60_000, 60_000] });
    arena.addHolder({ resources: ["also kept"], holdMs: [60_000, 60_000] });
    arena.addHolders(2, { resources: ["changing"], holdMs: [200, 1_000] });
    const first = await arena.holderOf("kept");
    const other = await arena.holderOf("also kept");
    for (const victim of ["a", "b", "c"]) {
      for (let again = 0; again < 3; again++) {
        await arena.restartMembers(victim);
        await sleep(random(0, 500));
      }
      await arena.ready(victim);
    }
    expect([first.losses, other.losses]).toEqual([0, 0]);
    expect(first.holding).toContain("kept");
    const successor = await arena.replaceHolderOf("kept"); // The single takeover that the verdict needs.
    expect(successor.name).not.toBe(first.name);
    const history = await arena.judge();
    expectClean(history);
    expect(history.tenures.filter((tenure) => tenure.lostAt !== undefined)).toEqual([]);
    expect(history.handovers).toBeGreaterThan(3);
  });

  test("of all members at once grants nobody a lease before those of the earlier incarnation are over", async () => {
    arena = await Arena.start();
    for (const one of ["one", "two"]) arena.addHolders(3, { resources: [one], holdMs: [1_000, 5_000] });
    await Promise.all([arena.holderOf("one"), arena.holderOf("two")]);
    const blackouts: { killedAt: bigint; servedAt: bigint }[] = [];
    for (let again = 0; again < 2; again++) {
      await sleep(random(1_000, 2_000));
      const killedAt = process.hrtime.bigint();
      await arena.restartMembers("a", "b", "c");
      await arena.ready("a", "b", "c");
      await Promise.all([arena.holderOf("one"), arena.holderOf("two")]);
      blackouts.push({ killedAt, servedAt: process.hrtime.bigint() });
    }
    await arena.replaceHolderOf("one");
    const history = await arena.judge();
    expectClean(history);
    for (const { killedAt, servedAt } of blackouts) {
      // A lease granted just before the kill may be seen a moment after it.
      const soon = killedAt + BigInt(200e6);
      const begun = history.tenures.filter(({ first }) => first.m1 > soon && first.m1 < servedAt);
      const waitedMs = begun.map(({ first }) => Number(first.m1 - killedAt) / 1e6);
      report(`first lease ${Math.min(...waitedMs).toFixed()} ms after all members were killed`);
      expect(Math.min(...waitedMs)).toBeGreaterThan(recoveryMs);
    }
  });
});
