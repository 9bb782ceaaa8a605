import type { SimResult } from "../kit/simulator.js";
import type { Invariant } from "../flease/stage/invariants.js";
import type { GridCounters } from "./counters.js";
import { type GridPlan, gridPlan, type GridTrial } from "./plan.js";
import { StoresWorld } from "./world.js";

export type GridResult = SimResult<GridPlan, Invariant, GridCounters>;

/** One run of the grid: the same seed, the same run. */
export async function runGrid(seed: number, trial?: GridTrial): Promise<GridResult> {
  const world = new StoresWorld(gridPlan(seed, trial));
  await world.run();
  const { counters, hash, stores, violation } = world;
  counters.conflicts = stores.reduce((sum, store) => sum + store.conflicts, 0);
  const where = `${stores.length} stores`;
  return { seed, plan: world.plan, where, traceHash: hash.digest(), counters, violation };
}
