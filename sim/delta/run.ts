import { SimRandom } from "../kit/random.js";
import { allStorageCheckers } from "./checkers/index.js";
import { addCounters } from "../kit/counters.js";
import type { Violation } from "../kit/violation.js";
import { type StorageCounters, storageCounters } from "./counters.js";
import { type StorageFeature, withoutStorageFeatures } from "./features.js";
import { type Ground, type StoragePlan, drawStoragePlan, grounds } from "./plan.js";
import type { StorageInvariant } from "./invariants.js";
import { StorageWorld } from "./world.js";

export interface StorageSimOptions {
  readonly seed: number;
  /** Default: the seed decides. */
  readonly ground?: Ground | undefined;
  /** Ends the run only at violations of these. */
  readonly only?: readonly StorageInvariant[] | undefined;
  /** What is different from the drawn plan. */
  readonly plan?: Partial<StoragePlan> | undefined;
  readonly without?: readonly StorageFeature[] | undefined;
  readonly story?: ((line: string) => void) | undefined;
}

export interface StorageSimResult {
  readonly plan: StoragePlan;
  readonly violation: Violation<StorageInvariant> | undefined;
  readonly traceHash: string;
  readonly counters: StorageCounters;
}

/** One run on shared storage. The seed decides everything in it. */
export function simulateStorage(options: StorageSimOptions): StorageSimResult {
  const { seed, only, story } = options;
  const random = new SimRandom(seed);
  const ground = options.ground ?? grounds[seed % grounds.length]!;
  const drawn = { ...drawStoragePlan(seed, ground, random), ...options.plan };
  const plan = withoutStorageFeatures(drawn, options.without ?? []);
  const world = new StorageWorld({
    plan,
    random,
    story,
    checkers: allStorageCheckers,
    asserted: only && ((invariant) => only.includes(invariant)),
  });
  world.run();
  return { plan, violation: world.violation, traceHash: world.hash.digest(), counters: world.counters };
}

export interface StorageBatch {
  readonly counters: StorageCounters;
  /** The first run that failed. */
  readonly failed: StorageSimResult | undefined;
}

/** Runs seed after seed until one fails or it is told to stop. */
export function simulateStorageMany(
  options: Omit<StorageSimOptions, "seed" | "story"> & {
    readonly firstSeed: number;
    /** Asked before each run. */
    readonly goOn: (runs: number) => boolean;
  },
): StorageBatch {
  const { firstSeed, goOn, ...rest } = options;
  const counters = storageCounters();
  for (let runs = 0; goOn(runs); runs += 1) {
    const result = simulateStorage({ ...rest, seed: firstSeed + runs });
    addCounters(counters, result.counters);
    if (result.violation !== undefined) return { counters, failed: result };
  }
  return { counters, failed: undefined };
}

/** One line that says what failed and how to run it again. */
export function storageFailureText({ plan, violation }: StorageSimResult): string {
  if (violation === undefined) return "no violation";
  const { invariant, text, atMs, event } = violation;
  return `${invariant}: ${text} (seed ${plan.seed}, ground ${plan.ground}, ${atMs.toFixed(1)} ms, event ${event})`;
}
