import type { Violation } from "../kit/violation.js";
import { gridPlan, type GridTrial } from "./plan.js";
import { GridWorld } from "./world.js";

export type GridCounters = Readonly<GridWorld["checks"]["counters"]> & { readonly conflicts: number };

export interface GridResult {
  readonly seed: number;
  readonly events: number;
  readonly counters: GridCounters;
  readonly violation: Violation | undefined;
}

/** One run of the grid: the same seed, the same run. */
export function runGrid(seed: number, trial?: GridTrial): GridResult {
  const world = new GridWorld(gridPlan(seed, trial));
  world.run();
  const conflicts = world.stores.reduce((sum, store) => sum + store.conflicts, 0);
  const { counters, violation } = world.checks;
  return { seed, events: world.events, counters: { ...counters, conflicts }, violation };
}
