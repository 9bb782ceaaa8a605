import type { DeltaSettings } from "leasehold/inner/delta/lease-protocol.js";
import { farmSettingsOf } from "leasehold/inner/flease/stores/open.js";
import { SharedWall } from "../kit/clocks.js";
import { SimRandom } from "../kit/random.js";
import { SettlingWorld } from "../kit/settling-world.js";
import { SimStore } from "../kit/store.js";
import type { Invariant } from "../flease/stage/invariants.js";
import { type GridCounters, gridCounters } from "./counters.js";
import type { GridPlan } from "./plan.js";

/** The ground of the clients of one run: time, the stores and the common part of all clocks. */
export class Ground extends SettlingWorld<Invariant, GridCounters> {
  readonly plan: GridPlan;
  readonly shared = new SharedWall();
  readonly stores: readonly SimStore[];
  readonly farmSettings: DeltaSettings;

  constructor(plan: GridPlan) {
    const { asserted, settings } = plan;
    super({
      random: new SimRandom(plan.seed + 1),
      counters: gridCounters(),
      asserted: (invariant) => asserted.includes(invariant),
    });
    this.plan = plan;
    this.stores = settings.members.map((_, index) => new SimStore("atomic", `s${index}`));
    this.farmSettings = farmSettingsOf(settings, settings.rpcTimeoutMs / 3);
  }

  /** Readings are whole milliseconds, 2 ms of ε; the rest is for the offsets. */
  randomOffsetMs(): number {
    const { maxClockSkewMs } = this.plan.settings;
    return this.random.between(-0.5, 0.5) * (maxClockSkewMs - 2);
  }
}
