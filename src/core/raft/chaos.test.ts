import { describe, expect, test } from "vitest";
import { Chaos } from "../../../test/raft/chaos.js";
import { withFaults } from "./planted-faults.js";
import type { Faults } from "./faults.js";

/**
 * Figure 3 on bad days: seeded runs of small clusters with loss, repetition, reordering, slow disks, crashes that lose what
 * was not written, partitions, transfers, compaction and changes of the membership. What each step is held against is
 * in `test/raft/invariants.ts`. `RAFT_RUNS=100000 npx vitest run src/core/raft/chaos.test.ts` for a long night.
 */
const runs = Number(process.env["RAFT_RUNS"] ?? 2_000);

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

test(`figure 3 holds in ${runs} runs, and each cluster comes back to work`, { timeout: 3_600_000 }, () => {
  let committed = 0;
  for (let seed = 1; seed <= runs; seed += 1) {
    try {
      committed += run(seed);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  // Else the days were so bad that nothing happened.
  expect(committed / runs).toBeGreaterThan(15);
});

describe("planted mistakes are seen", () => {
  test.each<[keyof Faults, RegExp]>([
    ["votesForOldLogs", /leader completeness/],
    ["previousTermUnchecked", /state machine safety|log matching|leader completeness/],
    ["conflictsKept", /state machine safety|log matching|leader completeness/],
    ["ownEntriesCountedBeforePersist", /state machine safety|leader completeness|election safety/],
    ["readWithoutRound", /linearizable reads/],
    ["readBeforeOwnCommit", /linearizable reads/],
    ["twoChangesAtOnce", /state machine safety|leader completeness|election safety/],
  ])("%s", (fault, expected) => {
    const error = withFaults({ [fault]: true }, () => {
      for (let seed = 1; seed <= 3_000; seed += 1) {
        const found = errorOf(seed);
        if (found !== undefined) return found;
      }
      return undefined;
    });
    // It may also be Raft itself that notices that what it is told cannot be.
    expect(`${error?.message}`).toMatch(new RegExp(`${expected.source}|^raft:`));
  });
});
