import { watchAbort } from "../common/abort-watch.js";
import type { World } from "../common/ports.js";
import type { Duration } from "../lease/options.js";
import type { Lease, Leases } from "../lease/types.js";
import type { Presence, Registration, Registry } from "./registry.js";

/** A group on any ground: one lease for each member, under the group's name, a slash and the member's. */
export class WaistRegistry implements Registry {
  readonly #leases: Leases;
  readonly #prefix: string;
  readonly #world: World;
  readonly #ttl: Duration | undefined;
  readonly #jitterMs: number;

  constructor(leases: Leases, group: string, world: World, ttl: Duration | undefined, jitterMs: number) {
    this.#leases = leases;
    this.#prefix = `${group}/`;
    this.#world = world;
    this.#ttl = ttl;
    this.#jitterMs = jitterMs;
  }

  async keep(
    { name, data }: Registration,
    signal: AbortSignal,
    told: (isIn: boolean) => void,
  ): Promise<void> {
    const { random, timers } = this.#world;
    const work = async (lease: Lease) => {
      told(true);
      await aborted(lease.signal);
      told(false);
      if (signal.aborted) return;
      const pause = new Promise<void>(
        (resolve) => void timers.after(random.next() * this.#jitterMs, resolve),
      );
      await Promise.race([pause, aborted(signal)]);
    };
    await this.#leases.lead(this.#prefix + name, work, { ttl: this.#ttl, data, signal });
  }

  /** The leases are their opener's. */
  close(): void {}

  async follow(signal: AbortSignal, told: (presence: Presence) => void): Promise<void> {
    for await (const { resource, state, token, data } of this.#leases.watch(this.#prefix, { signal })) {
      const name = resource.slice(this.#prefix.length);
      // Names below a member's are another group's.
      if (name !== "" && !name.includes("/"))
        told({ name, isThere: state === "held", token: token ?? 0n, data });
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => watchAbort(signal, resolve));
}
