import { MemoryMedium, MemoryStore } from "../../packages/leasehold/src/delta/memory/memory-store.js";
import type { MemoryMediumOptions } from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { openGrid } from "../../packages/leasehold/src/flease/stores/open.js";
import type { GridOpenOptions } from "../../packages/leasehold/src/flease/stores/open.js";
import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { World } from "../../packages/leasehold/src/common/ports.js";
import type { Provider } from "../../packages/leasehold/src/lease/provider.js";
import type { ConformanceGround } from "../../packages/leasehold/src/testing/conformance.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { groundOfProcesses } from "./virtual-ground.js";

/** ε = 20 ms, leases of up to 1 s, 50 ms for one phase. */
export const gridOptions = { maxClockSkewMs: 20, ttlMaxMs: 1_000, delayMs: 50 };

/** Three stores in memory, and participants that know each other only through the stores' content. */
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

  async open(name: string, more: Partial<GridOpenOptions> = {}): Promise<LeaseManager> {
    const leases = new LeaseManager(await this.provide(name, more), this.#world);
    this.#opened.push(leases);
    return leases;
  }

  provide(name: string, more: Partial<GridOpenOptions> = {}, world = this.#world): Promise<Provider> {
    const stores = this.media.map((medium) => new MemoryStore(medium, name));
    const incarnation = () => Math.floor(world.random.next() * 2 ** 48).toString(16);
    return openGrid(stores, world, { name, incarnation, ...gridOptions, ...more });
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((leases) => leases.close()));
  }
}

/** Stores in memory on virtual time. One of them may be silent once the grid has been founded. */
export function virtualGridGround(stalled?: "requests" | "answers"): ConformanceGround {
  const world = new VirtualWorld();
  const grid = new MemoryGrid(world);
  let isFounded = false;
  return groundOfProcesses(world, async (name, own) => {
    const provider = await grid.provide(name, { ttlMaxMs: 2_000 }, own);
    // The first use needs all of the stores.
    if (!isFounded) {
      for (const medium of grid.media) medium.latencyMs = { request: 1, answer: 1 };
      if (stalled !== undefined) grid.media[1]!.stall(stalled);
    }
    isFounded = true;
    return provider;
  });
}
