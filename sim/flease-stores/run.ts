import type { Violation } from "../kit/violation.js";
import type { Invariant } from "../flease/invariants.js";
import type { GridCounters } from "./counters.js";
import { gridPlan, type GridTrial } from "./plan.js";
import { StoresWorld } from "./world.js";

export interface GridResult {
  readonly seed: number;
  readonly traceHash: string;
  readonly counters: GridCounters;
  readonly violation: Violation<Invariant> | undefined;
}

/** One run of the grid: the same seed, the same run. */
export function runGrid(seed: number, trial?: GridTrial): GridResult {
  const world = new StoresWorld(gridPlan(seed, trial));
  world.run();
  const { counters, hash, stores, violation } = world;
  counters.conflicts = stores.reduce((sum, store) => sum + store.conflicts, 0);
  return { seed, traceHash: hash.digest(), counters, violation };
}
