import { SimRandom } from "../kit/random.js";
import { allStorageCheckers } from "./checkers/index.js";
import { type Batch, type BatchOptions, type SimResult, simulateSeeds } from "../kit/simulator.js";
import { type StorageCounters, storageCounters } from "./stage/counters.js";
import { storageFeatures } from "./features.js";
import { type Ground, type StoragePlan, drawStoragePlan, grounds } from "./stage/plan.js";
import type { StorageInvariant } from "./stage/invariants.js";
import { StorageWorld } from "./world.js";

export interface StorageSimOptions {
  readonly seed: number;
  /** Default: the seed decides. */
  readonly ground?: Ground | undefined;
  /** The run ends only at violations of these. */
  readonly only?: readonly StorageInvariant[] | undefined;
  /** Overrides of the drawn plan. */
  readonly plan?: Partial<StoragePlan> | undefined;
  readonly without?: readonly string[] | undefined;
  readonly story?: ((line: string) => void) | undefined;
}

export type StorageSimResult = SimResult<StoragePlan, StorageInvariant, StorageCounters>;

export type StorageBatch = Batch<StorageSimResult>;

/** One run on shared storage. The seed decides everything in it. */
export async function simulateStorage(options: StorageSimOptions): Promise<StorageSimResult> {
  const { seed, only, story } = options;
  const random = new SimRandom(seed);
  const ground = options.ground ?? grounds[seed % grounds.length]!;
  const drawn = { ...drawStoragePlan(seed, ground, random), ...options.plan };
  const plan = storageFeatures.without(drawn, options.without);
  const world = new StorageWorld({
    plan,
    random,
    story,
    checkers: allStorageCheckers,
    asserted: only && ((invariant) => only.includes(invariant)),
  });
  await world.run();
  const { violation, hash, counters } = world;
  return { seed, plan, where: `ground ${ground}`, violation, traceHash: hash.digest(), counters };
}

export const simulateStorageMany = (options: BatchOptions<StorageSimOptions>): Promise<StorageBatch> =>
  simulateSeeds(simulateStorage, storageCounters(), options);
