import type { SimRandom } from "./random.js";

/** A fault that recurs at random times. */
export interface Hazard {
  /** Mean time between two, ms; `Infinity`: it never happens. */
  readonly everyMs: number;
  /** The last true time. Default: the end of the run. */
  readonly untilMs?: number;
  readonly happens: () => void;
}

/** The world, as faults see it. */
export interface HazardousWorld {
  readonly nowMs: number;
  readonly random: SimRandom;
  at(timeMs: number, body: () => void): void;
}

/** Schedules faults. Each ground has its own. */
export class Chaos {
  readonly #world: HazardousWorld;

  constructor(world: HazardousWorld) {
    this.#world = world;
  }

  begin(hazards: readonly Hazard[]): void {
    for (const hazard of hazards) this.#await(hazard);
  }

  #await(hazard: Hazard): void {
    const { everyMs, untilMs = Infinity, happens } = hazard;
    if (everyMs === Infinity) return;
    const atMs = this.#world.nowMs + this.#world.random.exponential(everyMs);
    if (atMs >= untilMs) return;
    this.#world.at(atMs, () => {
      happens();
      this.#await(hazard);
    });
  }
}
