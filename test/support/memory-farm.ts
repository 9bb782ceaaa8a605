import {
  MemoryMedium,
  type MemoryMediumOptions,
  MemoryStore,
} from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { type DeltaOptions, openFarm } from "../../packages/leasehold/src/delta/provider/open.js";
import type { DeltaProvider } from "../../packages/leasehold/src/delta/provider/provider.js";
import type { Store, StoreTraits } from "../../packages/leasehold/src/delta/store.js";
import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { World } from "../../packages/leasehold/src/common/ports.js";
import type { ConformanceGround } from "../../packages/leasehold/src/testing/conformance.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { groundOfProcesses } from "./virtual-ground.js";
import { realWorld } from "./real-world.js";

/** Stores in memory that any number of processes open as one farm. */
export class MemoryFarm {
  readonly media: readonly MemoryMedium[];
  #opened = 0;

  /** `stores`: their number, or the kind of each. */
  constructor(
    world: World,
    stores: number | readonly StoreTraits["kind"][] = 3,
    options: Partial<MemoryMediumOptions> = {},
  ) {
    const { timers, random } = world;
    const kinds = typeof stores === "number" ? Array.from({ length: stores }, () => undefined) : stores;
    this.media = kinds.map((kind, index) => {
      const own = { timers, random, name: `store-${index}`, ...(kind && { kind }) };
      return new MemoryMedium({ ...own, ...options });
    });
  }

  /** Opens the farm in a separate process with this name and these clocks. */
  open(
    name: string,
    world: World,
    options: Partial<DeltaOptions> = {},
    wrap: (store: Store) => Store = (store) => store,
  ): Promise<DeltaProvider> {
    const holder = `${name}.${(this.#opened += 1)}`;
    const stores = this.media.map((medium) => wrap(new MemoryStore(medium, holder)));
    return openFarm(stores, world, { holder, ...options });
  }
}

export interface FarmGroundOptions extends Partial<DeltaOptions> {
  readonly media?: Partial<MemoryMediumOptions>;
  /** The kind of each store. Default: three that compare and set. */
  readonly kinds?: readonly StoreTraits["kind"][];
  /** Makes the stores fail, once a farm has been founded. */
  readonly afflict?: (media: readonly MemoryMedium[]) => void;
}

/** A farm in memory on virtual time. */
export function virtualFarmGround(options: FarmGroundOptions = {}): ConformanceGround {
  const world = new VirtualWorld();
  const { media, kinds, afflict, ...open } = options;
  const farm = new MemoryFarm(world, kinds, media);
  let isFounded = false;
  return groundOfProcesses(world, async (name, own) => {
    const provider = await farm.open(name, own, open);
    if (!isFounded) afflict?.(farm.media);
    isFounded = true;
    return provider;
  });
}

/** A farm in memory on real time. */
export function realFarmGround(kinds: readonly StoreTraits["kind"][]): ConformanceGround {
  const farm = new MemoryFarm(realWorld, kinds, { delayMs: 40 });
  const opened: LeaseManager[] = [];
  return {
    ttlMs: 800,
    open: async (name) => {
      const leases = new LeaseManager(await farm.open(name, realWorld, { leaseMsMax: 1_600 }), realWorld);
      opened.push(leases);
      return leases;
    },
    pass: (ms) =>
      new Promise((resolve) => {
        setTimeout(resolve, ms);
      }),
    close: async () => {
      await Promise.all(opened.map((leases) => leases.close()));
    },
  };
}
