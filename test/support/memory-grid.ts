import { Driver } from "../../src/delta/driver.js";
import { MemoryMedium, MemoryStore } from "../../src/delta/memory-store.js";
import type { MemoryMediumOptions } from "../../src/delta/memory-store.js";
import type { StoreAnswer } from "../../src/delta/store.js";
import { fleaseSettings } from "../../src/flease/settings.js";
import type { FleaseSettings } from "../../src/flease/settings.js";
import { GridNode } from "../../src/grid/grid-node.js";
import type { GridFarm, GridOptions } from "../../src/grid/grid-node.js";
import type { World } from "../../src/lease/ports.js";
import { LeaseManager } from "../../src/lease/lease-manager.js";

/** ε = 20 ms, leases of up to 1 s, 50 ms for one phase. */
export const gridSettings: FleaseSettings = fleaseSettings({
  members: ["store-01", "store-02", "store-03"],
  maxClockSkewMs: 20,
  ttlMaxMs: 1_000,
  rpcTimeoutMs: 50,
});

/** Three stores in memory, and participants that know no more of each other than what stands in them. */
export class MemoryGrid {
  readonly world: World;
  readonly media: MemoryMedium[];
  readonly nodes: GridNode[] = [];
  readonly #opened: LeaseManager[] = [];

  constructor(world: World, options: Partial<MemoryMediumOptions> = {}) {
    const { timers, random } = world;
    this.world = world;
    this.media = ["one", "two", "three"].map(
      (name) => new MemoryMedium({ timers, random, name, pollMs: 10, ...options }),
    );
  }

  open(name: string, more: Partial<GridOptions> = {}): LeaseManager {
    const stores = this.media.map((medium) => new MemoryStore(medium, name));
    const node = new GridNode({
      settings: gridSettings,
      driver: new Driver(stores, this.world),
      farm: knownFarm(this.media),
      traits: stores.map(({ traits }) => traits),
      name,
      incarnation: () => Math.floor(this.world.random.next() * 2 ** 48).toString(16),
      ...more,
    });
    this.nodes.push(node);
    const leases = new LeaseManager(node.provider, this.world);
    this.#opened.push(leases);
    return leases;
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((leases) => leases.close()));
  }
}

/** Stores of which each process knows the markers; one that has forgotten counts no more. */
export function knownFarm(media: readonly MemoryMedium[]): GridFarm {
  const ids = media.map(({ id }) => id);
  return {
    idOf: (store) => ids[store]!,
    refusal: () => undefined,
    admit: (store, answer): StoreAnswer => {
      if (answer.kind === "failed" || answer.id === ids[store]) return answer;
      throw new Error(`the store ${store} has forgotten`);
    },
  };
}
