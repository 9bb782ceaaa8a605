import { expect, test } from "vitest";
import { failureText } from "../kit/simulator.js";
import { simulateCore, simulateCoreMany } from "./run.js";

test("the bad days of a core break no invariant, and everything that is counted happens", async () => {
  const { counters, failed } = await simulateCoreMany({ firstSeed: 1, goOn: (runs) => runs < 12 });
  expect(failed && failureText(failed)).toBeUndefined();
  // A late election breaks an invariant; who hears of its removal has a test of its own.
  const { lateElections: _late, removalsHeard: _heard, undecided: _undecided, ...counts } = counters;
  const never = Object.entries(counts).filter(([, count]) => count === 0);
  expect(never).toEqual([]);
});

test("servers that come and go break no invariant, and hear that they were removed", async () => {
  let heard = 0;
  for (let seed = 1; seed <= 12; seed += 1) {
    const run = await simulateCore({ seed, plan: { membershipEveryMs: 800 } });
    expect(failureText(run)).toBe("no violation");
    heard += run.counters.removalsHeard;
  }
  expect(heard).toBeGreaterThan(0);
});

test("a seed decides a whole run of a core, and another seed makes another", async () => {
  const [one, other] = [await simulateCore({ seed: 3 }), await simulateCore({ seed: 3 })];
  expect(one.traceHash).toBe(other.traceHash);
  expect((await simulateCore({ seed: 4 })).traceHash).not.toBe(one.traceHash);
});
