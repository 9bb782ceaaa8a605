import { MemoryMedium, MemoryStore } from "../../src/delta/memory/memory-store.js";
import type { MemoryMediumOptions } from "../../src/delta/memory/memory-store.js";
import { openGrid } from "../../src/flease/stores/open.js";
import type { GridOpenOptions } from "../../src/flease/stores/open.js";
import { LeaseManager } from "../../src/lease/manager/lease-manager.js";
import type { World } from "../../src/common/ports.js";

/** ε = 20 ms, leases of up to 1 s, 50 ms for one phase. */
export const gridOptions = { maxClockSkewMs: 20, ttlMaxMs: 1_000, delayMs: 50 };

/** Three stores in memory, and participants that know no more of each other than what stands in them. */
export class MemoryGrid {
  readonly media: MemoryMedium[];
  readonly #world: World;
  readonly #opened: LeaseManager[] = [];

  constructor(world: World, options: Partial<MemoryMediumOptions> = {}) {
    const { timers, random } = world;
    this.#world = world;
    this.media = ["one", "two", "three"].map(
      (name) => new MemoryMedium({ timers, random, name, pollMs: 10, ...options }),
    );
  }

  async open(name: string, more: Partial<GridOpenOptions> = {}, world = this.#world): Promise<LeaseManager> {
    const stores = this.media.map((medium) => new MemoryStore(medium, name));
    const incarnation = () => Math.floor(world.random.next() * 2 ** 48).toString(16);
    const provider = await openGrid(stores, world, { name, incarnation, ...gridOptions, ...more });
    const leases = new LeaseManager(provider, world);
    this.#opened.push(leases);
    return leases;
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((leases) => leases.close()));
  }
}
