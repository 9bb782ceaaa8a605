import { afterEach, expect, test } from "vitest";
import { setTimeout as sleep } from "node:timers/promises";
import { Arena, report, ttlMs } from "./arena.js";
import { describeReport } from "../../packages/leasehold/src/testing/history/report.js";
import { eventually } from "../support/built.js";

/** Tests of the checker itself: it must not pass a run with a violation. */

let arena: Arena;
afterEach(() => arena.close());

test("a holder that uses its lease after losing it is caught", async () => {
  arena = await Arena.start();
  const liar = arena.addHolder({ resources: ["one"], holdMs: [30_000, 30_000], liesAfterLoss: true });
  await arena.holderOf("one");
  const honest = arena.addHolder({ resources: ["one"], holdMs: [30_000, 30_000] });
  await sleep(ttlMs);
  arena.stop(liar.pid);
  const successor = await arena.holderOf("one", 3 * ttlMs);
  expect(successor.name).toBe(honest.name);
  arena.continue(liar.pid);
  await sleep(ttlMs / 2);
  const history = await arena.judge();
  report(describeReport(history).replaceAll("\n", "\n    "));
  expect(history.verdict).toBe("violated");
  expect(history.violations.map((violation) => violation.rule).sort()).toEqual([
    "held-after-pause",
    "overlap",
  ]);
});

test("members that take part at once after a restart, having forgotten everything, are caught", async () => {
  // Longer than members take to start and to connect, even on a busy machine.
  arena = await Arena.start({ proxied: true, memberFault: "noRecoveryWait", ttlMs: 20_000 });
  const holders = arena.addHolders(3, { resources: ["one"], holdMs: [30_000, 30_000] });
  const holder = await arena.holderOf("one");
  // The holder cannot reach the members while they restart, and its lease continues.
  arena.network.cutBothWays(holder.name, "*");
  await arena.restartMembers("a", "b", "c");
  const isTaken = (): boolean => holders.some((one) => one !== holder && one.holding.has("one"));
  await eventually("a second holder has it too", isTaken, 15_000);
  await sleep(ttlMs / 4);
  const history = await arena.judge();
  report(describeReport(history).replaceAll("\n", "\n    "));
  expect(history.violations.map((violation) => violation.rule)).toEqual(["overlap"]);
});

test("a run in which nothing happened doesn't pass", async () => {
  arena = await Arena.start();
  arena.addHolder({ resources: ["one"], holdMs: [100, 200] });
  await arena.holderOf("one");
  await sleep(ttlMs / 2);
  expect((await arena.judge()).verdict).toBe("void");
});
