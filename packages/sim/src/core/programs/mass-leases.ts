import { CoreError } from "@leasehold/core/inner/state/errors.js";
import { grant, put } from "../world/requests.js";
import type { CoreWorld } from "../world/world.js";

/** The prefix of all keys attached to leases. */
export const leasePrefix = "lease/";

const ttlSeconds = 2;
/** The mean pause between two rounds. */
const restMs = 2_000;

/** Takes many leases at once, attaches a key to each and lets them expire: one command ends most of them. */
export class MassLeases {
  readonly #world: CoreWorld;
  readonly #leases: number;
  #count = 0;

  constructor(world: CoreWorld, leases: number) {
    this.#world = world;
    this.#leases = leases;
  }

  begin(): void {
    const { plan, random, servers } = this.#world;
    if (this.#world.nowMs > plan.stableFromMs) return;
    const server = random.pick(servers);
    for (let index = 0; index < this.#leases; index += 1) {
      this.#count += 1;
      const key = `${leasePrefix}m.${this.#count}`;
      this.#world.call(server, grant(ttlSeconds), (outcome) => {
        if (outcome === "lost" || outcome instanceof CoreError) return;
        if (outcome.$typeName !== "etcdserverpb.LeaseGrantResponse") return;
        this.#world.call(server, put(key, "", outcome.ID), () => undefined);
      });
    }
    this.#world.after(ttlSeconds * 1_000 + random.exponential(restMs), () => this.begin());
  }
}
