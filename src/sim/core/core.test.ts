import { expect, test } from "vitest";
import { coreFailureText, simulateCore, simulateCoreMany } from "./run.js";

test("bad days of a core: no invariant is broken, and everything happens", () => {
  const { counters, failed } = simulateCoreMany({ firstSeed: 1, goOn: (runs) => runs < 12 });
  expect(failed && coreFailureText(failed)).toBeUndefined();
  for (const [name, count] of Object.entries(counters))
    if (name !== "undecided") expect(count, name).toBeGreaterThan(0);
});

test("a seed stands for a run", () => {
  const [one, other] = [simulateCore({ seed: 3 }), simulateCore({ seed: 3 })];
  expect(one.traceHash).toBe(other.traceHash);
  expect(simulateCore({ seed: 4 }).traceHash).not.toBe(one.traceHash);
});
