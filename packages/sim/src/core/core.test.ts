import { expect, test } from "vitest";
import { failureText } from "../kit/simulator.js";
import { simulateCore, simulateCoreMany } from "./run.js";
import { patient } from "./world/plan.js";

test("random faults of a core break no invariant, and every counted event happens", async () => {
  const { counters, failed } = await simulateCoreMany({ firstSeed: 1, goOn: (runs) => runs < 24 });
  expect(failed && failureText(failed)).toBeUndefined();
  // Late elections would break an invariant. Removed servers and new cores have tests of their own.
  const { lateElections: _late, removalsHeard: _heard, forcedCores: _forced, ...others } = counters;
  const { undecided: _undecided, restores: _restores, ...counts } = others;
  const never = Object.entries(counts).filter(([, count]) => count === 0);
  expect(never).toEqual([]);
});

test("servers that are added and removed break no invariant, and learn of their removal", async () => {
  let heard = 0;
  for (let seed = 1; seed <= 12; seed += 1) {
    const run = await simulateCore({
      seed,
      plan: { membershipEveryMs: 800, introduced: seed % 2 === 0, upgrades: seed % 3 === 0 },
    });
    expect(failureText(run)).toBe("no violation");
    heard += run.counters.removalsHeard;
  }
  expect(heard).toBeGreaterThan(0);
});

test("a watch misses nothing when bad times delay a removal, even one that its server never hears of", async () => {
  const plan = {
    membershipEveryMs: 300,
    lossRate: 0.2,
    watchClients: 6,
    leaseClients: 1,
    bulkKeys: 0,
    rights: false,
    stableFromMs: 6_000,
    endMs: 36_000,
  };
  // In the first run the server learns of its removal, in the others it does not. Clients must not stay with
  // it.
  const runs = [{ seed: 291_100_022_927 }, { seed: 7_000_039, plan }, { seed: 7_000_083, plan }];
  for (const run of runs) expect(failureText(await simulateCore(run))).toBe("no violation");
});

test("a slow disk that a majority needs deposes no leader and starves nobody in good times", async () => {
  const plan = {
    servers: 2,
    writeMs: 60,
    slowDiskFactor: 10,
    bulkKeys: 0,
    turnMs: 0,
    membershipEveryMs: undefined,
    stableFromMs: 5_000,
    endMs: 65_000,
  };
  // The second operation removes one of three servers, and keeps the slow one.
  const runs = [{ seed: 10, plan }, { seed: 29_140_697 }];
  for (const run of runs) expect(failureText(await simulateCore(run))).toBe("no violation");
});

test("servers with cut and slow connections and short pauses answer every request", async () => {
  const { counters, failed } = await simulateCoreMany({
    firstSeed: 1,
    plan: patient,
    goOn: (runs) => runs < 5,
  });
  expect(failed && failureText(failed)).toBeUndefined();
  for (const count of [counters.cuts, counters.pauses, counters.repeats, counters.backPressure])
    expect(count).toBeGreaterThan(5);
});

test("a lost core starts again with all its data, and refuses servers of the former one", async () => {
  const plan = {
    restores: 2,
    membershipEveryMs: 1_500,
    rights: true,
    bulkKeys: 0,
    turnMs: 0,
    forms: undefined,
  };
  const { counters, failed } = await simulateCoreMany({ firstSeed: 1, plan, goOn: (runs) => runs < 10 });
  expect(failed && failureText(failed)).toBeUndefined();
  for (const count of [counters.backups, counters.restores, counters.forcedCores, counters.strangersRefused])
    expect(count).toBeGreaterThan(1);
});

test("a seed decides a whole run of a core, and another seed makes another", async () => {
  const [one, other] = [await simulateCore({ seed: 3 }), await simulateCore({ seed: 3 })];
  expect(one.traceHash).toBe(other.traceHash);
  expect((await simulateCore({ seed: 4 })).traceHash).not.toBe(one.traceHash);
});
