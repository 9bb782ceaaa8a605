import type { StoragePlan } from "./plan.js";
import { few } from "../../src/lease/lists.js";

/** What can be taken out of a run, so that a failure is told without what it does not need. */
const removals = {
  crashes: { crashEveryMs: Infinity },
  pauses: { pauseEveryMs: Infinity },
  stalls: { stallEveryMs: Infinity },
  forgetting: { forgetEveryMs: Infinity },
  "short-lives": { lifeMs: Infinity },
  silence: { silent: 0 },
  "late-requests": { slowRate: 0 },
  "sluggish-requests": { sluggishRate: 0 },
  drift: { clockRateError: 0, clockDrift: 0 },
  laziness: { lazyRate: 0 },
  releases: { releaseRate: 0 },
  cancellations: { cancelRate: 0 },
  "torn-writes": { tornRate: 0 },
  "mixed-lengths": { mixedLeases: false },
} as const satisfies Record<string, Partial<StoragePlan>>;

export type StorageFeature = keyof typeof removals;

export const storageFeatures = Object.keys(removals) as StorageFeature[];

export function isStorageFeature(name: string): name is StorageFeature {
  return name in removals;
}

/** The plan without some of its features. */
export function withoutStorageFeatures(plan: StoragePlan, without: readonly StorageFeature[]): StoragePlan {
  const removed: Partial<StoragePlan>[] = without.map((feature) => removals[feature]);
  return Object.assign({}, plan, ...few(removed)) as StoragePlan;
}
