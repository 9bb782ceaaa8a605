import { SharedWall } from "../kit/clocks.js";
import { SimRandom } from "../kit/random.js";
import { SimWorld } from "../kit/world.js";
import type { Invariant } from "../flease/stage/invariants.js";
import { type GridCounters, gridCounters } from "./counters.js";
import type { GridPlan } from "./plan.js";
import { SimStore } from "./store.js";

/** What stands under the clients of one run: time, the stores and what all clocks have in common. */
export class Ground extends SimWorld<Invariant, GridCounters> {
  readonly plan: GridPlan;
  readonly shared = new SharedWall();
  readonly stores: readonly SimStore[];
  /** The markers that everybody goes by, since stores that forgot have waited. */
  readonly knownIds: string[];

  constructor(plan: GridPlan) {
    const { asserted } = plan;
    super({
      random: new SimRandom(plan.seed + 1),
      counters: gridCounters(),
      asserted: (invariant) => asserted.includes(invariant),
    });
    this.plan = plan;
    this.stores = plan.settings.members.map(() => new SimStore());
    this.knownIds = this.stores.map(({ id }) => id);
  }

  /** Readings are whole milliseconds, 2 ms of ε; the rest is for the offsets. */
  randomOffsetMs(): number {
    const { maxClockSkewMs } = this.plan.settings;
    return this.random.between(-0.5, 0.5) * (maxClockSkewMs - 2);
  }
}
