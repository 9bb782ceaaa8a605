import { expect, test } from "vitest";
import { withFaults } from "../../test/planted/switches.js";
import type { Invariant } from "../flease/stage/invariants.js";
import type { GridMistake } from "./plan.js";
import type { GridCounters } from "./counters.js";
import { runGrid } from "./run.js";

/** Many seeds: `LEASEHOLD_SEEDS=5000 npx vitest run src/sim/grid`. */
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 24);

/** What random runs must have seen, in 24 runs, or they prove nothing. */
const least: Partial<GridCounters> = {
  tenures: 500,
  renewals: 500,
  releases: 300,
  refusals: 500,
  conflicts: 500,
  takeovers: 10,
  crashes: 20,
  pauses: 20,
  forgets: 10,
  ghosts: 10,
  clockFaults: 10,
};

test(
  "exclusion, token order, quorums and releases hold on bad days",
  () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { counters, violation } = runGrid(seed);
      expect({ seed, violation }).toEqual({ seed, violation: undefined });
      for (const [name, count] of Object.entries(counters)) total[name] = (total[name] ?? 0) + count;
    }
    expect(Object.entries(least).filter(([name, count]) => total[name]! < count)).toEqual([]);
  },
  20_000 + 500 * seeds,
);

test("the same seed is the same run", () => {
  expect(runGrid(7)).toEqual(runGrid(7));
});

/** The first seed, of at most so many, in which an invariant breaks. */
function firstBreach(mistake: GridMistake | undefined, invariant: Invariant, seedsMax: number) {
  for (let seed = 1; seed <= seedsMax; seed += 1) {
    const { violation } = runGrid(seed, { ...(mistake && { mistake }), asserted: [invariant] });
    if (violation !== undefined) return violation.invariant;
  }
  return undefined;
}

test.each([
  ["replyBeforeWrite", "I4"],
  ["replyBeforeWrite", "I1"],
  ["staleWriteWins", "I4"],
  ["staleWriteWins", "I1"],
  ["staleWriteWins", "I2"],
  ["forgottenCountsAtOnce", "I1"],
] as const)("the mistake %s is caught by %s", (mistake, invariant) => {
  expect(firstBreach(mistake, invariant, 120)).toBe(invariant);
});

test("an ε that is ignored is caught by I1", () => {
  withFaults({ noSafetyPeriod: true }, () => expect(firstBreach(undefined, "I1", 120)).toBe("I1"));
});
