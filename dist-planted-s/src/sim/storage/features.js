import { few } from "../../lease/lists.js";
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
};
export const storageFeatures = Object.keys(removals);
export function isStorageFeature(name) {
    return name in removals;
}
/** The plan without some of its features. */
export function withoutStorageFeatures(plan, without) {
    const removed = without.map((feature) => removals[feature]);
    return Object.assign({}, plan, ...few(removed));
}
