import { expect, test } from "vitest";
import { failureText } from "../kit/simulator.js";
import { simulateCore, simulateCoreMany } from "./run.js";

test("bad days of a core: no invariant is broken, and everything happens", () => {
  const { counters, failed } = simulateCoreMany({ firstSeed: 1, goOn: (runs) => runs < 12 });
  expect(failed && failureText(failed)).toBeUndefined();
  const { undecided: _undecided, ...counts } = counters;
  const never = Object.entries(counts).filter(([, count]) => count === 0);
  expect(never).toEqual([]);
});

test("a seed stands for a run", () => {
  const [one, other] = [simulateCore({ seed: 3 }), simulateCore({ seed: 3 })];
  expect(one.traceHash).toBe(other.traceHash);
  expect(simulateCore({ seed: 4 }).traceHash).not.toBe(one.traceHash);
});
