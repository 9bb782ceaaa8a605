import { expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { type Fault, withFaults } from "../../../../test/planted/switches.js";
import { RandomWatches } from "../../../../test/core/random-watches.js";

/**
 * Random clients of one server: streams that come, go and stall, watches from past, present and future
 * revisions, revisions larger than a batch, leases that end together. `LEASEHOLD_EFFORT=500 npx vitest run
 * src/replica/watch-hub.test.ts` runs it overnight.
 */
const runs = effort;

function errorOf(seed: number): string | undefined {
  return new RandomWatches(seed).run();
}

test(`in ${runs} runs each watch gets everything once and in order, and progress is correct`, () => {
  for (let seed = 1; seed <= runs; seed += 1) expect([seed, errorOf(seed)]).toEqual([seed, undefined]);
});

test.each<[Fault, RegExp]>([
  ["gatheringPlaceStays", /heard nothing more/],
  ["endsReadOneByOne", /heard|progress/],
  ["unsyncedToBefore", /heard/],
  ["slowWatcherSkips", /heard/],
])("planted: %s", (fault, expected) => {
  const error = withFaults({ [fault]: true }, () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const found = errorOf(seed);
      if (found !== undefined) return `${seed}: ${found}`;
    }
    return undefined;
  });
  expect(error).toMatch(expected);
});
