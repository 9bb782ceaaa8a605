import { Features } from "../kit/features.js";
import type { StoragePlan } from "./stage/plan.js";

const less = (removed: Partial<StoragePlan>) => (plan: StoragePlan) => ({ ...plan, ...removed });

export const storageFeatures = new Features({
  crashes: less({ crashEveryMs: Infinity }),
  pauses: less({ pauseEveryMs: Infinity }),
  stalls: less({ stallEveryMs: Infinity }),
  forgetting: less({ forgetEveryMs: Infinity }),
  replacements: less({ replaceEveryMs: Infinity }),
  "clock-steps": less({ stepEveryMs: Infinity }),
  meddling: less({ meddleEveryMs: Infinity, detachRate: 0 }),
  suspensions: less({ suspendEveryMs: Infinity }),
  "second-programs": less({ programs: 1 }),
  "short-lives": less({ lifeMs: Infinity }),
  silence: less({ silent: 0 }),
  "late-requests": less({ slowRate: 0 }),
  "sluggish-requests": less({ sluggishRate: 0 }),
  drift: less({ clockRateError: 0, clockDrift: 0 }),
  laziness: less({ lazyRate: 0 }),
  releases: less({ releaseRate: 0 }),
  cancellations: less({ cancelRate: 0 }),
  "torn-writes": less({ tornRate: 0 }),
  "mixed-lengths": less({ mixedLeases: false }),
});
