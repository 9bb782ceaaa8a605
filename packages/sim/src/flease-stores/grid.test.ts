import { expect, test } from "vitest";
import { gridded, searchGrid } from "../../../../test/planted/gridded.js";
import type { GridCounters } from "./counters.js";
import { runGrid } from "./run.js";

/** Many seeds: `LEASEHOLD_SEEDS=5000 npx vitest run --project random src/flease-stores`. */
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 24);

/** The least counts in 24 runs, without which they prove nothing. */
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
  async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { counters, violation } = await runGrid(seed);
      expect({ seed, violation }).toEqual({ seed, violation: undefined });
      for (const [name, count] of Object.entries(counters)) total[name] = (total[name] ?? 0) + count;
    }
    expect(total["errors"]).toBe(0);
    expect(Object.entries(least).filter(([name, count]) => total[name]! < count)).toEqual([]);
  },
  20_000 + 500 * seeds,
);

test("a seed repeats its run", async () => {
  expect(await runGrid(7)).toEqual(await runGrid(7));
});

test.each(gridded)("$name is caught by $breaks", async (mistake) => {
  const { failed } = await searchGrid(mistake);
  expect(failed?.violation?.invariant).toBe(mistake.breaks);
});
