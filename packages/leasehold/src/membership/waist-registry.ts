import { watchAbort } from "../common/abort-watch.js";
import type { World } from "../common/ports.js";
import type { Duration } from "../lease/options.js";
import { slotNumber } from "../lease/slots.js";
import type { Change, Lease, Leases } from "../lease/types.js";
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
    report: (isIn: boolean) => void,
  ): Promise<void> {
    const { random, timers } = this.#world;
    const work = async (lease: Lease) => {
      report(true);
      await aborted(lease.signal);
      report(false);
      if (signal.aborted) return;
      const pause = new Promise<void>(
        (resolve) => void timers.after(random.next() * this.#jitterMs, resolve),
      );
      await Promise.race([pause, aborted(signal)]);
    };
    await this.#leases.lead(this.#prefix + name, work, { ttl: this.#ttl, data, signal });
  }

  /** The leases belong to their opener. */
  close(): void {}

  follow(signal: AbortSignal, report: (presence: Presence) => void): Promise<void> {
    // Not an async function: a refused watch must throw synchronously.
    return this.#reportAll(this.#leases.watch(this.#prefix, { signal }), report);
  }

  async #reportAll(changes: AsyncIterable<Change>, report: (presence: Presence) => void): Promise<void> {
    for await (const { resource, state, token, data } of changes) {
      const name = resource.slice(this.#prefix.length);
      // Names below a member's belong to another group, and slots to a counted or shared lease.
      if (name !== "" && !name.includes("/") && slotNumber(resource) === 0)
        report({ name, isThere: state === "held", token: token ?? 0n, data });
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => watchAbort(signal, resolve));
}
