import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/built.js";
import { Arena, expectClean, random, ttlMs } from "./arena.js";

/**
 * Processes that are stopped with SIGSTOP and continue later, as happens with a debugger, a full disk or a
 * closed laptop lid.
 */

let arena: Arena;
afterEach(() => arena.close());

describe("SIGSTOP", () => {
  test("of a holder past its expiry makes its first look report the loss, as another has taken over", async () => {
    arena = await Arena.start();
    const resources = ["one"];
    arena.addHolders(3, { resources, holdMs: [30_000, 30_000] });
    for (let again = 0; again < 3; again++) {
      const holder = await arena.holderOf("one", 3 * ttlMs);
      const { losses } = holder;
      await sleep(random(0, 1.5 * ttlMs));
      arena.stop(holder.pid);
      const successor = await arena.holderOf("one", 3 * ttlMs);
      expect(successor.name).not.toBe(holder.name);
      await sleep(random(0, 300));
      arena.continue(holder.pid);
      await eventually("it finds its lease lost", () => holder.losses > losses, ttlMs);
    }
    const history = await arena.judge();
    expectClean(history);
    expect(history.lossesFoundAfterPause).toBe(3);
  });

  test("of a holder for less than its lease costs nothing", async () => {
    arena = await Arena.start();
    const [holder] = arena.addHolders(1, { resources: ["one"], holdMs: [30_000, 30_000] });
    await arena.holderOf("one");
    for (let again = 0; again < 4; again++) {
      arena.stop(holder!.pid);
      await sleep(random(100, ttlMs / 3));
      arena.continue(holder!.pid);
      await sleep(ttlMs / 2);
    }
    expect(holder!.losses).toBe(0);
    const rival = arena.addHolder({ resources: ["one"] });
    arena.kill(holder!.pid);
    expect((await arena.holderOf("one", 3 * ttlMs)).name).toBe(rival.name);
    expectClean(await arena.judge());
  });

  test("of a member costs no lease, and leases go on changing hands", async () => {
    arena = await Arena.start();
    const holder = arena.addHolder({ resources: ["kept"], holdMs: [60_000, 60_000] });
    arena.addHolders(3, { resources: ["changing"], holdMs: [200, 1_000] });
    await Promise.all([arena.holderOf("kept"), arena.holderOf("changing")]);
    for (const member of ["a", "b", "c"]) {
      const pid = arena.memberPid(member);
      arena.stop(pid);
      await sleep(1.3 * ttlMs);
      arena.continue(pid);
      await sleep(200);
    }
    expect(holder.losses).toBe(0);
    const rival = arena.addHolder({ resources: ["kept"] });
    arena.kill(holder.pid);
    expect((await arena.holderOf("kept", 3 * ttlMs)).name).toBe(rival.name);
    const history = await arena.judge();
    expectClean(history);
    expect(history.handovers).toBeGreaterThan(3);
  });

  test("of a majority of members lets every lease expire, and all go on when the members do", async () => {
    arena = await Arena.start();
    for (const one of ["one", "two"]) arena.addHolders(2, { resources: [one], holdMs: [60_000, 60_000] });
    for (let again = 0; again < 2; again++) {
      await Promise.all([arena.holderOf("one"), arena.holderOf("two")]);
      const pids = again === 0 ? ["a", "b"] : ["a", "b", "c"];
      const stopped = pids.map((id) => arena.memberPid(id));
      for (const pid of stopped) arena.stop(pid);
      await sleep(random(1.2, 2) * ttlMs);
      for (const pid of stopped) arena.continue(pid);
      await Promise.all([arena.holderOf("one"), arena.holderOf("two")]);
      await sleep(ttlMs);
    }
    // The process that lost a lease may have been the first to get it again; here another one must get it.
    await arena.replaceHolderOf("one");
    const history = await arena.judge();
    expectClean(history);
    expect(history.tenures.filter((tenure) => tenure.lostAt !== undefined)).toHaveLength(4);
  });
});

test("leases stay exclusive while holders and members are killed, stopped and restarted in any order", async () => {
  arena = await Arena.start();
  const resources = ["one", "two"];
  const holdMs = [300, 4_000] as const;
  for (const resource of resources) arena.addHolders(3, { resources: [resource], holdMs });
  const end = performance.now() + 20_000;
  let member = 0;
  while (performance.now() < end) {
    const resource = resources[Math.floor(random(0, resources.length))]!;
    const victim = await arena.holderOf(resource);
    await sleep(random(0, 800));
    if (Math.random() < 0.4) {
      arena.kill(victim.pid);
      arena.addHolder({ resources: [resource], holdMs });
    } else {
      arena.stop(victim.pid);
    }
    const id = ["a", "b", "c"][member++ % 3]!;
    if (Math.random() < 0.5) {
      await arena.restartMembers(id);
    } else {
      arena.stop(arena.memberPid(id));
      await sleep(random(0, ttlMs));
      arena.continue(arena.memberPid(id));
    }
    await sleep(random(0, 1_500));
    arena.continueAll();
  }
  arena.continueAll();
  await sleep(ttlMs);
  for (const resource of resources) await arena.replaceHolderOf(resource);
  const history = await arena.judge();
  expectClean(history);
  expect(history.tenures.length).toBeGreaterThan(5);
});
