import { describe, expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { Chaos } from "../../../../test/scenarios/raft-runner/chaos.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";

/**
 * Checks the properties of figure 3 under faults: seeded runs of small clusters with loss, duplication,
 * reordering, slow disks, crashes that lose unwritten data, partitions, transfers, compaction and membership
 * changes. Each step is checked against `test/scenarios/raft-runner/invariants.ts`. `LEASEHOLD_EFFORT=500 npx
 * vitest run src/raft/chaos.test.ts` runs it overnight.
 */
const runs = 100 * effort;

function run(seed: number): number {
  const chaos = new Chaos(seed, { servers: seed % 2 === 0 ? 3 : 5, steps: 1_000, changes: seed % 3 === 0 });
  chaos.run();
  return chaos.heal();
}

function errorOf(seed: number): Error | undefined {
  try {
    run(seed);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

test(`figure 3 holds in ${runs} runs, and each cluster recovers`, { timeout: 3_600_000 }, () => {
  let committed = 0;
  for (let seed = 1; seed <= runs; seed += 1) {
    try {
      committed += run(seed);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  // Otherwise the faults prevented nearly all progress.
  expect(committed / runs).toBeGreaterThan(15);
});

describe("planted mistakes are seen", () => {
  // The search begins at a seed known to show the mistake.
  test.each<[keyof Faults, RegExp, number?]>([
    ["votesForOldLogs", /leader completeness/],
    ["previousTermUnchecked", /state machine safety|log matching|leader completeness/, 976],
    ["conflictsKept", /state machine safety|log matching|leader completeness/],
    ["ownEntriesCountedBeforePersist", /state machine safety|leader completeness|election safety/, 292],
    ["readWithoutRound", /linearizable reads/, 10_260],
    ["readBeforeOwnCommit", /linearizable reads/, 71],
    ["twoChangesAtOnce", /state machine safety|leader completeness|election safety/, 2_526],
  ])("%s", (fault, expected, firstSeed = 1) => {
    const error = withFaults({ [fault]: true }, () => {
      for (let seed = firstSeed; seed < firstSeed + 3_000; seed += 1) {
        const found = errorOf(seed);
        if (found !== undefined) return found;
      }
      return undefined;
    });
    // Raft itself may also detect the impossible state.
    expect(`${error?.message}`).toMatch(new RegExp(`${expected.source}|^raft:`));
  });
});
