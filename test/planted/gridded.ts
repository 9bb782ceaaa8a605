import { type Faults, duringFaults } from "./switches.js";
import { fleaseSettings } from "../../packages/leasehold/src/flease/protocol/settings.js";
import type { GridMistake, GridPlan } from "../../packages/sim/src/flease-stores/plan.js";
import { type GridResult, runGrid } from "../../packages/sim/src/flease-stores/run.js";
import type { Invariant } from "../../packages/sim/src/flease/stage/invariants.js";

/**
 * A mistake in how acceptors are kept in stores, or in what they decide there, and the invariant that it
 * breaks.
 */
export interface Gridded {
  readonly name: string;
  readonly mistake?: GridMistake;
  readonly faults?: Partial<Faults>;
  readonly breaks: Invariant;
  readonly plan?: Partial<GridPlan>;
  /** The first seed of the search. Default: 1. */
  readonly seed?: number;
}

/**
 * The only faults are stores that are silent or forget. Machines agree on the time, so that waits are as
 * short as possible.
 */
const forgetful: Partial<GridPlan> = {
  settings: fleaseSettings({
    members: ["a", "b", "c"],
    cellSize: 3,
    maxClockSkewMs: 4,
    ttlMaxMs: 800,
    rpcTimeoutMs: 10,
    clockRateError: 0.45,
  }),
  resources: 2,
  durationMs: 40_000,
  latencyMs: 1,
  lateness: 0,
  wildRates: false,
  clockDrift: 0,
  stepsTogether: false,
  every: { crashMs: Infinity, pauseMs: Infinity, silenceMs: 400, forgetMs: 200, clockMs: Infinity },
};

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
    name: "G: an entry computed from an old one overwrites a newer one, two holders",
    mistake: "staleWriteWins",
    breaks: "I1",
  },
  {
    name: "G: an entry computed from an old one overwrites a newer one, tokens",
    mistake: "staleWriteWins",
    breaks: "I2",
  },
  {
    name: "G: an entry computed from an old one overwrites a newer one, no quorum behind it",
    mistake: "staleWriteWins",
    breaks: "I4",
  },
  {
    name: "G: a store that has forgotten counts at once",
    faults: { forgottenStoreCounts: true },
    breaks: "I1",
    plan: forgetful,
  },
  {
    name: "G: visits are made without asking the farm which stores count",
    faults: { visitsPassTheFarm: true },
    breaks: "I1",
    plan: forgetful,
    seed: 33,
  },
  { name: "G: no safety period", faults: { noSafetyPeriod: true }, breaks: "I1", seed: 34 },
];

const runsMax = 240;

/** Runs one seed after another until the invariant is broken. */
export function searchGrid({ mistake, faults = {}, breaks, plan, seed = 1 }: Gridded): Promise<{
  readonly runs: number;
  readonly failed: GridResult | undefined;
}> {
  return duringFaults(faults, async () => {
    for (let runs = 1; runs <= runsMax; runs += 1) {
      const result = await runGrid(seed + runs - 1, {
        ...(mistake && { mistake }),
        asserted: [breaks],
        plan,
      });
      if (result.violation !== undefined) return { runs, failed: result };
    }
    return { runs: runsMax, failed: undefined };
  });
}
