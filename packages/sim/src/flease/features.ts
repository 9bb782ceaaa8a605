import { Features } from "../kit/features.js";
import type { RunPlan } from "./stage/plan.js";
import { withoutViews } from "./stage/views-plan.js";
import { noWaist } from "./stage/waist-plan.js";

const removals = {
  crashes: (plan) => ({ ...plan, chaos: { ...plan.chaos, crashEveryMs: Infinity } }),
  blackouts: (plan) => ({ ...plan, chaos: { ...plan.chaos, blackoutEveryMs: Infinity } }),
  pauses: (plan) => ({ ...plan, chaos: { ...plan.chaos, pauseEveryMs: Infinity } }),
  partitions: (plan) => ({ ...plan, chaos: { ...plan.chaos, partitionEveryMs: Infinity } }),
  "wall-clock-changes": (plan) => ({ ...plan, chaos: { ...plan.chaos, offsetEveryMs: Infinity } }),
  "rate-changes": (plan) => ({ ...plan, chaos: { ...plan.chaos, rateEveryMs: Infinity } }),
  slews: (plan) => ({ ...plan, chaos: { ...plan.chaos, slewEveryMs: Infinity } }),
  suspensions: (plan) => ({ ...plan, chaos: { ...plan.chaos, suspendEveryMs: Infinity } }),
  "steps-together": (plan) => ({ ...plan, chaos: { ...plan.chaos, stepTogetherEveryMs: Infinity } }),
  loss: (plan) => ({ ...plan, network: { ...plan.network, lossRate: 0, releaseLossRate: 0 } }),
  duplication: (plan) => ({ ...plan, network: { ...plan.network, duplicationRate: 0 } }),
  "late-messages": (plan) => ({ ...plan, network: { ...plan.network, tailRate: 0 } }),
  "late-timers": (plan) => ({ ...plan, timersLateMs: 0 }),
  releases: (plan) => ({ ...plan, workload: { ...plan.workload, releaseRate: 0 } }),
  cancellations: (plan) => ({ ...plan, workload: { ...plan.workload, cancelRate: 0 } }),
  laziness: (plan) => ({ ...plan, workload: { ...plan.workload, lazyRate: 0 } }),
  waiting: (plan) => ({ ...plan, workload: { ...plan.workload, waitingRate: 0 } }),
  "fast-acquisitions": (plan) => ({ ...plan, workload: { ...plan.workload, fastRate: 0 } }),
  "mixed-lengths": (plan) => ({ ...plan, workload: { ...plan.workload, mixedTtl: false } }),
  "skew-watch": (plan) => ({ ...plan, skewWatch: false }),
  waist: (plan) => ({ ...plan, waist: noWaist }),
  jobs: (plan) => ({
    ...plan,
    waist: { ...plan.waist, jobsEach: 0 },
    network: { ...plan.network, readEveryMs: 0 },
  }),
  sharers: (plan) => ({ ...plan, waist: { ...plan.waist, sharersEach: 0 } }),
  elections: (plan) => ({ ...plan, waist: { ...plan.waist, electRate: 0 } }),
  queries: (plan) => ({ ...plan, waist: { ...plan.waist, queryRate: 0 } }),
  breaks: (plan) => ({ ...plan, waist: { ...plan.waist, breakRate: 0 } }),
  aborts: (plan) => ({ ...plan, waist: { ...plan.waist, abortRate: 0 } }),
  "clients-that-come-and-go": (plan) => ({ ...plan, chaos: { ...plan.chaos, clientEveryMs: Infinity } }),
  views: withoutViews,
  cells: (plan) => ({ ...plan, settings: { ...plan.settings, cellSize: plan.settings.members.length } }),
  "other-resources": (plan) => ({
    ...plan,
    resources: plan.resources.slice(0, 1),
    agents: plan.agents.filter(({ resource }) => resource === plan.resources[0]),
  }),
} as const satisfies Record<string, (plan: RunPlan) => RunPlan>;

export type Feature = keyof typeof removals;

export const features: Features<RunPlan, Feature> = new Features<RunPlan, Feature>(removals);
