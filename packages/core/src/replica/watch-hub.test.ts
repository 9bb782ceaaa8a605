import { expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { type Fault, withFaults } from "../../../../test/planted/switches.js";
import { RandomWatches } from "../../../../test/core/random-watches.js";

/**
 * Random clients of one server: streams that come, go and take nothing for a while, watches from the past, from
 * now and from later on, revisions that are more than a batch, leases that end together.
 * `LEASEHOLD_EFFORT=500 npx vitest run src/replica/watch-hub.test.ts` for a long night.
 */
const runs = effort;

function errorOf(seed: number): string | undefined {
  return new RandomWatches(seed).run();
}

test(`in ${runs} runs each watch hears everything once and in order, and progress is true`, () => {
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
