import type { Faults } from "../../src/flease/faults.js";
import { withFaults } from "../../src/flease/planted-faults.js";
import type { GridMistake } from "../../src/sim/grid/plan.js";
import { type GridResult, runGrid } from "../../src/sim/grid/run.js";
import type { Invariant } from "../../src/sim/violation.js";

/** A mistake in how acceptors are kept in stores, or in what they decide there, and the invariant that sees it. */
export interface Gridded {
  readonly name: string;
  readonly mistake?: GridMistake;
  readonly faults?: Partial<Faults>;
  readonly breaks: Invariant;
}

export const gridded: readonly Gridded[] = [
  {
    name: "G: a reply before its entry is written, two holders",
    mistake: "replyBeforeWrite",
    breaks: "I1",
  },
  {
    name: "G: a reply before its entry is written, no quorum behind it",
    mistake: "replyBeforeWrite",
    breaks: "I4",
  },
  {
    name: "G: an entry computed from an old one over a newer one, two holders",
    mistake: "staleWriteWins",
    breaks: "I1",
  },
  {
    name: "G: an entry computed from an old one over a newer one, tokens",
    mistake: "staleWriteWins",
    breaks: "I2",
  },
  {
    name: "G: an entry computed from an old one over a newer one, no quorum behind it",
    mistake: "staleWriteWins",
    breaks: "I4",
  },
  {
    name: "G: a store that has forgotten counts at once",
    mistake: "forgottenCountsAtOnce",
    breaks: "I1",
  },
  { name: "G: no safety period", faults: { noSafetyPeriod: true }, breaks: "I1" },
];

const runsMax = 240;

/** Run after run until one breaks. */
export function searchGrid({ mistake, faults = {}, breaks }: Gridded): {
  readonly runs: number;
  readonly failed: GridResult | undefined;
} {
  return withFaults(faults, () => {
    for (let runs = 1; runs <= runsMax; runs += 1) {
      const result = runGrid(runs, { ...(mistake && { mistake }), asserted: [breaks] });
      if (result.violation !== undefined) return { runs, failed: result };
    }
    return { runs: runsMax, failed: undefined };
  });
}
