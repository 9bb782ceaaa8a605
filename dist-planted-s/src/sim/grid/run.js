import { gridPlan } from "./plan.js";
import { GridWorld } from "./world.js";
/** One run of the grid: the same seed, the same run. */
export function runGrid(seed, trial) {
    const world = new GridWorld(gridPlan(seed, trial));
    world.run();
    const conflicts = world.stores.reduce((sum, store) => sum + store.conflicts, 0);
    const { counters, violation } = world.checks;
    return { seed, events: world.events, counters: { ...counters, conflicts }, violation };
}
