import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { Arena, type Holder, expectClean, random, report, skewMs, ttlMs } from "./arena.js";

/** Networks that drop or delay messages, in both directions or in one, without any error. */

let arena: Arena;
afterEach(() => arena.close());

const members = ["a", "b", "c"];

/** Two holders: one has the resource and keeps it for long. */
async function holderAndRival(): Promise<{ holder: Holder; rival: Holder }> {
  const both = arena.addHolders(2, { resources: ["one"], holdMs: [60_000, 60_000] });
  const holder = await arena.holderOf("one");
  // Long enough for a renewal.
  await sleep(ttlMs);
  return { holder, rival: both.find((one) => one !== holder)! };
}

describe("a holder", () => {
  test.each(["swallowed", "held"] as const)(
    "that is cut off from a majority, its frames %s, loses its lease in time and another takes over",
    async (frames) => {
      arena = await Arena.start({ proxied: true });
      const { holder, rival } = await holderAndRival();
      const cutAt = process.hrtime.bigint();
      for (const member of ["b", "c"]) arena.network.cutBothWays(holder.name, member, frames);
      await untilHeldBy(rival);
      arena.network.heal();
      await sleep(1_000);
      expect(holder.losses).toBe(1);
      expect(rival.holding).toContain("one");
      const history = await arena.judge();
      expectClean(history);
      const [before, after] = history.tenures;
      const lastOkMs = Number(before!.last.m1 - cutAt) / 1e6;
      report(
        `held for ${lastOkMs.toFixed()} ms after the cut, taken over ${sinceMs(cutAt, after!.first.m1)} ms after it`,
      );
      expect(lastOkMs).toBeLessThan(ttlMs);
    },
  );

  test("that hears nothing loses its lease though its requests arrive, and so does one whose requests are lost", async () => {
    arena = await Arena.start({ proxied: true });
    const { holder, rival } = await holderAndRival();
    arena.network.cut("*", holder.name);
    await untilHeldBy(rival);
    expect(holder.losses).toBe(1);
    arena.network.heal();
    await sleep(ttlMs / 2);
    arena.network.cut(rival.name, "*");
    await untilHeldBy(holder);
    expect(rival.losses).toBe(1);
    arena.network.heal();
    expectClean(await arena.judge());
  });

  test("that is cut off from a minority keeps its lease", async () => {
    arena = await Arena.start({ proxied: true });
    const { holder, rival } = await holderAndRival();
    for (const member of members) {
      arena.network.cutBothWays(holder.name, member);
      await sleep(1.2 * ttlMs);
      arena.network.heal();
      await sleep(300);
    }
    expect(holder.losses).toBe(0);
    arena.kill(holder.pid);
    await untilHeldBy(rival);
    expectClean(await arena.judge());
  });
});

describe("a member", () => {
  test("that is cut off from everybody, or answers late, costs no lease", async () => {
    arena = await Arena.start({ proxied: true });
    const { holder, rival } = await holderAndRival();
    arena.addHolders(2, { resources: ["changing"], holdMs: [200, 600] });
    arena.network.cutBothWays("*", "a");
    await sleep(1.5 * ttlMs);
    arena.network.heal();
    await sleep(500);
    arena.network.delay("*", "b", 300);
    arena.network.delay("b", "*", 300);
    await sleep(1.5 * ttlMs);
    arena.network.heal();
    expect(holder.losses).toBe(0);
    arena.kill(holder.pid);
    await untilHeldBy(rival);
    const history = await arena.judge();
    expectClean(history);
    expect(history.handovers).toBeGreaterThan(3);
  });
});

test("everybody goes on when cuts and delays that come and go have ended", async () => {
  arena = await Arena.start({ proxied: true });
  const holders = ["one", "two"].flatMap((one) =>
    arena.addHolders(3, { resources: [one], holdMs: [500, 4_000] }),
  );
  await Promise.all([arena.holderOf("one"), arena.holderOf("two")]);
  const names = holders.map((holder) => holder.name);
  const any = (all: readonly string[]): string => all[Math.floor(random(0, all.length))]!;
  for (let round = 0; round < 4; round++) {
    // The holder is cut off from two of three members in one direction; the other holders have faults of
    // their own.
    const victim = await arena.holderOf(round % 2 === 0 ? "one" : "two", 5 * ttlMs);
    for (const member of members.slice(round % 2).slice(0, 2)) {
      if (Math.random() < 0.5) arena.network.cut(victim.name, member, "held");
      else arena.network.cut(member, victim.name);
    }
    for (let faults = 0; faults < 6; faults++) {
      const [from, to] = Math.random() < 0.5 ? [any(names), any(members)] : [any(members), any(names)];
      if (from === victim.name || to === victim.name) continue;
      if (Math.random() < 0.5) arena.network.cut(from, to, "held");
      else arena.network.delay(from, to, 2 * ttlMs * Math.random());
      await sleep(random(0, 800));
    }
    await sleep(ttlMs / 2);
    arena.network.heal();
    await sleep(random(0, 600));
  }
  arena.network.heal();
  const healedAt = process.hrtime.bigint();
  await sleep(2 * ttlMs + 20 * skewMs);
  await arena.replaceHolderOf("one");
  const history = await arena.judge();
  expectClean(history);
  for (const resource of ["one", "two"]) {
    const later = history.tenures.find((one) => one.resource === resource && one.last.m1 > healedAt);
    expect(later, `${resource} is held after the network has healed`).toBeDefined();
  }
});

async function untilHeldBy(holder: Holder): Promise<Holder> {
  const giveUpAt = performance.now() + 5 * ttlMs;
  while (!holder.holding.has("one")) {
    if (performance.now() > giveUpAt) throw new Error(`${holder.name} does not get the lease`);
    await sleep(10);
  }
  return holder;
}

function sinceMs(from: bigint, to: bigint): string {
  return (Number(to - from) / 1e6).toFixed();
}
