import { clockRateErrorDefault } from "leasehold/inner/common/clock-rates.js";
import type { StoreTraits } from "leasehold/inner/delta/store.js";
import { SimRandom } from "../../kit/random.js";

/** The grounds, one for each kind of program. */
export const grounds = [
  "conditional",
  "paper",
  "always-bounded",
  "oracle",
  "consensus",
  "shared",
  "register",
  "forms",
  "counted",
] as const;
export type Ground = (typeof grounds)[number];

/** Whether leases are conditional: then exclusion and the order of tokens need no bound on delays. */
export function isConditional(ground: Ground): boolean {
  return ground === "conditional" || ground === "forms" || ground === "counted";
}

/** The plan of a run, decided before it begins. */
export interface StoragePlan {
  readonly seed: number;
  readonly ground: Ground;
  /** One for each store. */
  readonly kinds: readonly StoreTraits["kind"][];
  /** The number of stores that stop answering for good at some moment. */
  readonly silent: number;
  readonly processes: number;
  /** The longest Δ, ms. Processes differ when `mixedLeases`. */
  readonly leaseMs: number;
  readonly mixedLeases: boolean;
  /** δ, ms. */
  readonly delayMs: number;
  /** ρ, the assumed rate error of clocks. */
  readonly clockRateError: number;
  /** The true rate error of steady clocks. */
  readonly clockDrift: number;
  /** The time from which δ holds, ms: 0 for ND. */
  readonly stableFromMs: number;
  readonly endMs: number;
  /** Before that time: the share of requests that take longer than δ. */
  readonly slowRate: number;
  readonly slowMaxMs: number;
  /** The share of requests that take almost as long as they may. */
  readonly sluggishRate: number;
  readonly crashEveryMs: number;
  readonly pauseEveryMs: number;
  readonly pauseMaxMs: number;
  readonly stallEveryMs: number;
  readonly forgetEveryMs: number;
  /**
   * The mean time between replacements of a store. Processes that start later use the new store; the others
   * still use the old one.
   */
  readonly replaceEveryMs: number;
  /**
   * While δ does not hold yet: the mean time between steps of a machine's system clock, and the longest step
   * in leases. No machine is suspended then, because programs rely on the steady clock.
   */
  readonly stepEveryMs: number;
  readonly stepLeasesMax: number;
  /** The mean time between suspensions of a machine. Its steady clock stops meanwhile. */
  readonly suspendEveryMs: number;
  /**
   * On the grounds `conditional` and `paper`: the mean time between breaks and requests to release by a
   * process. On `conditional` also the share of holds that end by detaching.
   */
  readonly meddleEveryMs: number;
  readonly detachRate: number;
  /** The programs of a process on the grounds `forms` and `counted`: they want the same names. */
  readonly programs: number;
  /** The longest life of a process, ms: shorter than the wait of a store that has forgotten, or unlimited. */
  readonly lifeMs: number;
  /** Probabilities of a holder's actions at each turn. */
  readonly releaseRate: number;
  /** The share of renewals and releases that are as late as allowed, or later. */
  readonly lazyRate: number;
  readonly thinkMeanMs: number;
  /** The share of operations that their caller cancels. */
  readonly cancelRate: number;
  /** The share of writes during which the process crashes: some stores receive them, others never do. */
  readonly tornRate: number;
}

/**
 * A renewal takes up to 5δ (Fig. 5), and may wait δ to look at the farm. If it begins later than this many δ
 * before the end, it may be too late.
 */
export const renewalDelays = 7;

/** 83,333 ppm. */
export const slewed = 1 / 12;

/**
 * The duration of a run after its stabilisation, in longest waits of a contender, so that each contender has
 * several tenures.
 */
const stableWaits = 14;
const unstableWaits = 6;

/** The stream of clock faults and of programs: other draws of a run stay as they are. */
const lateStream = 2 ** 48;

/**
 * Draws a run. Each feature is off in about half of the runs: otherwise rare combinations would be drowned
 * out.
 */
export function drawStoragePlan(seed: number, ground: Ground, random: SimRandom): StoragePlan {
  const sometimes = <T>(value: T, otherwise: T) => (random.chance(0.5) ? value : otherwise);
  const delayMs = Math.round(random.between(20, 200));
  const leaseMs = Math.round(delayMs * random.between(12, 30));
  const n = random.pick([1, 3, 3, 5]);
  const kinds = drawKinds(ground, n, random);
  const waitMs = leaseMs + 6 * delayMs;
  const nd = ground === "always-bounded" || random.chance(0.3);
  const stableFromMs = nd ? 0 : unstableWaits * waitMs;
  const never = Infinity;
  return {
    seed,
    ground,
    kinds,
    delayMs,
    leaseMs,
    stableFromMs,
    silent: sometimes(Math.floor((n - 1) / 2), 0),
    processes: 2 + random.below(3),
    mixedLeases: random.chance(0.5),
    ...drawRates(random),
    endMs: stableFromMs + stableWaits * waitMs,
    slowRate: nd ? 0 : random.between(0, 0.3),
    slowMaxMs: random.pick([3, 10, 40]) * delayMs,
    sluggishRate: random.pick([0, 0.3, 0.8]),
    crashEveryMs: sometimes(random.between(2, 8) * waitMs, never),
    pauseEveryMs: nd ? never : sometimes(random.between(1, 4) * waitMs, never),
    pauseMaxMs: random.pick([0.5, 1.5, 3]) * leaseMs,
    stallEveryMs: nd ? never : sometimes(random.between(1, 4) * waitMs, never),
    forgetEveryMs: n > 1 ? sometimes(6 * waitMs, never) : never,
    lifeMs: random.chance(0.15) ? waitMs : never,
    releaseRate: sometimes(random.between(0.1, 0.5), 0.05),
    lazyRate: sometimes(random.between(0.1, 0.6), 0),
    thinkMeanMs: random.magnitude(delayMs, 2 * leaseMs),
    cancelRate: sometimes(random.between(0.05, 0.4), 0),
    tornRate: sometimes(random.between(0.005, 0.05), 0),
    replaceEveryMs: n > 1 && random.chance(0.3) ? 6 * waitMs : never,
    ...drawMachines(new SimRandom(seed + lateStream), waitMs),
  };
}

/** Steps below and above what a lease tolerates, or suspensions, and a second program in each process. */
function drawMachines(
  random: SimRandom,
  waitMs: number,
): Pick<
  StoragePlan,
  "stepEveryMs" | "stepLeasesMax" | "suspendEveryMs" | "programs" | "meddleEveryMs" | "detachRate"
> {
  const fault = random.pick(["steps", "suspensions", "none", "none"]);
  const everyMs = random.between(0.5, 2) * waitMs;
  const stepLeasesMax = random.pick([0.15, 1.5, 20]);
  const programs = random.pick([1, 2]);
  const meddles = random.chance(0.4);
  return {
    meddleEveryMs: meddles ? random.between(0.3, 1.5) * waitMs : Infinity,
    detachRate: meddles ? random.between(0.2, 0.7) : 0,
    stepEveryMs: fault === "steps" ? everyMs : Infinity,
    stepLeasesMax,
    suspendEveryMs: fault === "suspensions" ? everyMs : Infinity,
    programs,
  };
}

/** Quartz, or a time service that slews a clock at chrony's maximum rate. */
function drawRates(random: SimRandom): Pick<StoragePlan, "clockRateError" | "clockDrift"> {
  const clockDrift = random.pick([0, 0.001, slewed]);
  return { clockRateError: clockDrift === slewed ? clockRateErrorDefault : clockDrift, clockDrift };
}

/** The kinds of stores that an algorithm supports. */
function drawKinds(ground: Ground, n: number, random: SimRandom): StoreTraits["kind"][] {
  const all = (kind: StoreTraits["kind"]) => Array.from({ length: n }, () => kind);
  if (isConditional(ground) || ground === "consensus") return all("atomic");
  if (random.chance(0.3)) return all("atomic");
  if (random.chance(0.6)) return all("slotted");
  return Array.from({ length: n }, () => random.pick(["atomic", "slotted"]));
}
