import type { SimRandom } from "./random.js";

/** Something that goes wrong again and again, at random times. */
export interface Hazard {
  /** Mean time between two, ms; `Infinity`: it never happens. */
  readonly everyMs: number;
  /** It happens before this true time only. Default: as long as the run lasts. */
  readonly untilMs?: number;
  readonly happens: () => void;
}

/** What things go wrong in. */
export interface HazardousWorld {
  readonly nowMs: number;
  readonly random: SimRandom;
  at(timeMs: number, body: () => void): void;
}

/** Lets things go wrong. Which they are is each ground's own matter. */
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
