import { type Fault, type Faults, duringFaults } from "./switches.js";
import { type Ground, type StoragePlan, slewed } from "../../packages/sim/src/delta/stage/plan.js";
import { type StorageBatch, simulateStorageMany } from "../../packages/sim/src/delta/run.js";
import type { StorageInvariant } from "../../packages/sim/src/delta/stage/invariants.js";

/** A mistake in leases on shared storage, the invariant that it breaks, and a seed that shows it. */
export interface Stored {
  readonly name: string;
  readonly faults: Partial<Faults>;
  readonly ground: Ground;
  readonly breaks: StorageInvariant;
  readonly seed: number;
  readonly plan?: Partial<StoragePlan>;
}

const slotted: Partial<StoragePlan> = { kinds: ["slotted", "slotted", "slotted"] };

/** The mistakes about clocks are in `packages/sim/src/delta/drivers.test.ts`. */
const soundMachines: Partial<StoragePlan> = {
  stepEveryMs: Infinity,
  suspendEveryMs: Infinity,
  programs: 1,
  meddleEveryMs: Infinity,
  detachRate: 0,
};

/** Processes break, detach and take over leases while stores are replaced. */
const meddling: Partial<StoragePlan> = {
  meddleEveryMs: 2_000,
  detachRate: 0.5,
  releaseRate: 0.3,
  kinds: ["atomic", "atomic", "atomic"],
  silent: 0,
  replaceEveryMs: 20_000,
};

/** The only faults are those that the row adds. */
const calm: Partial<StoragePlan> = {
  delayMs: 50,
  mixedLeases: false,
  silent: 0,
  stableFromMs: 0,
  slowRate: 0,
  crashEveryMs: Infinity,
  pauseEveryMs: Infinity,
  stallEveryMs: Infinity,
  forgetEveryMs: Infinity,
  replaceEveryMs: Infinity,
  lifeMs: Infinity,
  cancelRate: 0,
  tornRate: 0,
};

/** Three stores that forget. No store is silent, slow or replaced, no call is cancelled and no write torn. */
const threeThatForget: Partial<StoragePlan> = {
  delayMs: 50,
  leaseMs: 800,
  silent: 0,
  stableFromMs: 0,
  slowRate: 0,
  kinds: ["atomic", "atomic", "atomic"],
  replaceEveryMs: Infinity,
  lifeMs: Infinity,
  cancelRate: 0,
  tornRate: 0,
};

/** Stores come back empty, often twice, and writes take as long as allowed. */
const manyReturns: Partial<StoragePlan> = {
  leaseMs: 800,
  processes: 4,
  sluggishRate: 0.8,
  forgetEveryMs: 3_000,
  endMs: 40_000,
};

/** Holders keep renewing: no process dies, no write is torn, no call is cancelled, and releases are rare. */
const untroubled: Partial<StoragePlan> = {
  crashEveryMs: Infinity,
  lifeMs: Infinity,
  tornRate: 0,
  cancelRate: 0,
  lazyRate: 0,
  releaseRate: 0.05,
};

const meddled: readonly (readonly [name: string, mistake: Fault, breaks: StorageInvariant])[] = [
  ["S: a detached lease is free", "detachedIsFree", "exclusion"],
  ["S: a lease that was taken over can be taken over again", "passStaysInTheRecord", "adoption"],
];

export const stored: readonly Stored[] = [
  {
    // With the paper's own way of counting a lease, a renewal may begin at its very end: Δ + 6δ allows for
    // that.
    name: "S: waiting Δ + 5δ where holders renew",
    faults: { holdFromReturn: true, waitFiveDelays: true },
    ground: "paper",
    breaks: "renewal",
    seed: 3,
    plan: {
      kinds: ["slotted"],
      silent: 0,
      sluggishRate: 1,
      lazyRate: 1,
      releaseRate: 0.02,
      clockRateError: 0,
      clockDrift: 0,
      stableFromMs: 0,
      slowRate: 0,
      delayMs: 50,
      // The look at the farm must still be fresh at the very end of the shorter leases.
      leaseMs: 1_400,
      mixedLeases: true,
      lifeMs: Infinity,
      cancelRate: 0,
      tornRate: 0,
      processes: 4,
      thinkMeanMs: 50,
    },
  },
  {
    name: "S: a writer that asks for half of the readers' slots",
    faults: { writerSkipsSlots: true },
    ground: "forms",
    breaks: "exclusion",
    seed: 2,
  },
  {
    name: "S: a call without a mode does not look for readers",
    faults: { plainIsNoWriter: true },
    ground: "forms",
    breaks: "exclusion",
    seed: 1,
  },
  {
    name: "S: a reader with the token of its slot",
    faults: { readerHasTheTokenOfItsSlot: true },
    ground: "forms",
    breaks: "tokens",
    seed: 1,
  },
  {
    name: "S: callers of different limits do not share slots",
    faults: { eachLimitHasItsSlots: true },
    ground: "counted",
    breaks: "counted",
    seed: 1,
  },
  {
    name: "S: slots on a store that has forgotten and counts at once",
    faults: { forgottenStoreCounts: true },
    ground: "counted",
    breaks: "exclusion",
    seed: 21,
  },
  {
    // A program must be stopped for longer than its lease, but not longer than an attempt may take, which is
    // possible only where leases differ. Slow stores and several programs in each process make a stop between
    // gate and slot more likely.
    name: "S: a reader that trusts its gate",
    faults: { readerTrustsItsGate: true },
    ground: "forms",
    breaks: "tokens",
    seed: 2,
    plan: {
      ...calm,
      sluggishRate: 1,
      lazyRate: 0,
      clockDrift: 0,
      clockRateError: 0,
      kinds: ["atomic"],
      leaseMs: 1_500,
      mixedLeases: true,
      processes: 4,
      programs: 3,
      thinkMeanMs: 500,
      pauseEveryMs: 200,
      pauseMaxMs: 1_500,
      stableFromMs: 40_000,
      endMs: 40_000,
    },
  },
  { name: "S: no 2δ pause", faults: { noPause: true }, ground: "paper", breaks: "exclusion", seed: 161 },
  { name: "S: no second look", faults: { noReRead: true }, ground: "paper", breaks: "exclusion", seed: 11 },
  {
    name: "S: a reader that flickers",
    faults: { flickeringReader: true },
    ground: "register",
    breaks: "no-flicker",
    seed: 29,
  },
  {
    name: "S: an old write over a newer one",
    faults: { blindOverwrite: true },
    ground: "register",
    breaks: "regularity",
    seed: 9,
  },
  {
    // Each half of the protection saves the renewals that the loss of the other half would delay, so both are
    // removed.
    name: "S: the content of stores, and acknowledgements after their round, are forgotten",
    faults: { contentsForgotten: true, lateAnswersForgotten: true },
    ground: "always-bounded",
    breaks: "renewal",
    seed: 2,
    plan: {
      kinds: ["atomic", "atomic", "atomic", "atomic", "atomic"],
      silent: 0,
      sluggishRate: 0.8,
      lazyRate: 0,
      releaseRate: 0.3,
      thinkMeanMs: 100,
      tornRate: 0.05,
      processes: 2,
      crashEveryMs: Infinity,
      forgetEveryMs: Infinity,
      replaceEveryMs: Infinity,
      lifeMs: Infinity,
      cancelRate: 0,
    },
  },
  {
    name: "S: a release over a successor",
    faults: { releaseOverSuccessor: true },
    ground: "paper",
    breaks: "renewal",
    seed: 33,
    plan: { replaceEveryMs: Infinity },
  },
  {
    // A release that names its record makes the shortcut safe: both halves of the protection must be removed.
    name: "S: a free register without compare-and-set is taken without a wait",
    faults: { freeShortcutWithoutCompareAndSet: true, releaseOverSuccessor: true },
    ground: "paper",
    breaks: "exclusion",
    seed: 6,
    plan: { ...slotted, replaceEveryMs: Infinity },
  },
  {
    name: "S: waits use the process's own Δ and δ",
    faults: { ownWait: true },
    ground: "paper",
    breaks: "exclusion",
    seed: 94,
  },
  {
    name: "S: one reader's release frees all",
    faults: { readerReleaseFreesAll: true },
    ground: "shared",
    breaks: "renewal",
    seed: 20,
  },
  {
    name: "S: a reader that gives up frees the record that other readers rely on",
    faults: { readerWithdraws: true },
    ground: "shared",
    breaks: "exclusion",
    seed: 10,
    plan: {
      ...calm,
      kinds: ["atomic", "atomic", "atomic"],
      leaseMs: 700,
      clockRateError: 0,
      clockDrift: 0,
      processes: 4,
      thinkMeanMs: 300,
      releaseRate: 0.3,
      lazyRate: 0.5,
      sluggishRate: 0.3,
      cancelRate: 0.4,
      endMs: 40_000,
    },
  },
  {
    name: "S: a crashed reader's record hides a writer",
    faults: { greatestRecordOnly: true },
    ground: "shared",
    breaks: "exclusion",
    seed: 977,
    plan: {
      kinds: ["slotted", "slotted", "slotted"],
      stableFromMs: 0,
      slowRate: 0,
      tornRate: 0.15,
      processes: 4,
      silent: 0,
      forgetEveryMs: Infinity,
      replaceEveryMs: Infinity,
      lifeMs: Infinity,
      crashEveryMs: Infinity,
      pauseEveryMs: Infinity,
      stallEveryMs: Infinity,
      thinkMeanMs: 300,
      releaseRate: 0.3,
    },
  },
  {
    // A short lease's record, left on one store while all processes start, is taken for the record by which a
    // long lease's holder renews.
    name: "S: a crashed contender's record hides a holder's renewals",
    faults: { greatestRecordOnly: true },
    ground: "paper",
    breaks: "exclusion",
    seed: 75,
    plan: {
      ...calm,
      ...slotted,
      leaseMs: 1_500,
      mixedLeases: true,
      clockRateError: 0,
      clockDrift: 0,
      processes: 6,
      thinkMeanMs: 50,
      tornRate: 0.3,
      releaseRate: 0.05,
      lazyRate: 0.7,
      sluggishRate: 0,
      endMs: 3_000,
    },
  },
  {
    name: "S: a reader that hides a longer Δ",
    faults: { readerHidesOthers: true },
    ground: "shared",
    breaks: "exclusion",
    seed: 23,
    plan: {
      delayMs: 50,
      leaseMs: 2_500,
      mixedLeases: true,
      processes: 4,
      silent: 0,
      lazyRate: 0.9,
      releaseRate: 0.15,
      stableFromMs: 0,
      slowRate: 0,
      thinkMeanMs: 1_000,
      crashEveryMs: Infinity,
      replaceEveryMs: Infinity,
      endMs: 120_000,
    },
  },
  {
    // Two processes contend for the lease that a leader left half renewed, and the process that has read the
    // leader's last record loses.
    name: "S: a renewal takes a loser's record for a successor's",
    faults: { loserEndsHold: true },
    ground: "oracle",
    breaks: "leader",
    seed: 167,
    plan: {
      ...calm,
      kinds: ["atomic", "atomic", "atomic"],
      leaseMs: 800,
      clockRateError: 0,
      clockDrift: 0,
      processes: 4,
      sluggishRate: 0.3,
      cancelRate: 0.1,
      tornRate: 0.1,
      endMs: 40_000,
    },
  },
  {
    // One reader joins the readers that it sees, while another has read a store that had come back empty.
    name: "S: a reader joins an epoch although another reader has a greater one",
    faults: { readerJoinsOlderEpoch: true },
    ground: "shared",
    breaks: "tokens",
    seed: 4,
    plan: {
      ...calm,
      ...slotted,
      leaseMs: 700,
      clockRateError: 0,
      clockDrift: 0,
      processes: 5,
      thinkMeanMs: 300,
      releaseRate: 0.5,
      lazyRate: 0.3,
      sluggishRate: 0.8,
      forgetEveryMs: 4_000,
      endMs: 60_000,
    },
  },
  {
    name: "S: consensus asks a store that has come back empty",
    faults: { forgottenRegistersCount: true },
    ground: "consensus",
    breaks: "agreement",
    seed: 4,
    plan: { ...threeThatForget, forgetEveryMs: 2_500, endMs: 40_000, crashEveryMs: 3_000 },
  },
  {
    name: "S: the time that others have waited for a store does not count",
    faults: { waitIsForgotten: true },
    ground: "conditional",
    breaks: "readmission",
    seed: 40,
  },
  {
    name: "S: consensus objects of one process share their ranks",
    faults: { rankOfProcess: true },
    ground: "consensus",
    breaks: "agreement",
    seed: 3,
  },
  {
    name: "S: Δ counted from the end of the write",
    faults: { holdFromEndOfWrite: true },
    ground: "conditional",
    breaks: "exclusion",
    seed: 276,
    plan: {
      delayMs: 100,
      leaseMs: 1_200,
      kinds: ["atomic"],
      silent: 0,
      slowRate: 1,
      slowMaxMs: 60,
      clockRateError: 0,
      clockDrift: 0,
      stableFromMs: 40_000,
      endMs: 40_000,
      mixedLeases: false,
      processes: 2,
      lazyRate: 0.8,
    },
  },
  {
    name: "S: ρ of 0.1 % where a time service slews",
    faults: {},
    ground: "conditional",
    breaks: "exclusion",
    seed: 4,
    plan: { clockRateError: 0.001, clockDrift: slewed },
  },
  {
    // Leases are so long that 6δ doesn't make up for the error of the clocks.
    name: "S: waits of the paper's leases assume exact clocks",
    faults: { paperRatesIgnored: true },
    ground: "paper",
    breaks: "exclusion",
    seed: 6,
    plan: {
      ...calm,
      ...slotted,
      leaseMs: 4_000,
      clockRateError: 0.1,
      clockDrift: slewed,
      processes: 4,
      thinkMeanMs: 100,
      releaseRate: 0.9,
      lazyRate: 1,
      endMs: 60_000,
    },
  },
  {
    // The paper's way of counting a lease is needed, since the watch on δ would otherwise notice the delay.
    name: "S: claims that are not announced, and holders that ask for announcements",
    faults: { quietClaims: true, holdFromReturn: true },
    ground: "paper",
    breaks: "exclusion",
    seed: 415,
    plan: {
      ...calm,
      ...slotted,
      delayMs: 100,
      leaseMs: 3_000,
      mixedLeases: true,
      clockRateError: 0,
      clockDrift: 0,
      processes: 2,
      thinkMeanMs: 200,
      releaseRate: 0,
      lazyRate: 0,
      pauseEveryMs: 2_500,
      pauseMaxMs: 3_000,
      stableFromMs: 15_000,
      endMs: 26_000,
    },
  },
  {
    name: "S: two lists of one generation are taken for two farms",
    faults: { tiesAreRefused: true },
    ground: "paper",
    breaks: "one-farm",
    seed: 9,
    plan: { ...calm, ...slotted, ...manyReturns },
  },
  {
    name: "S: leases take epochs that the stores do not know of yet",
    faults: { epochsUnbounded: true },
    ground: "conditional",
    breaks: "tokens",
    seed: 563,
    plan: {
      ...calm,
      kinds: ["atomic", "atomic", "atomic"],
      leaseMs: 250,
      clockRateError: 0,
      clockDrift: 0,
      processes: 2,
      thinkMeanMs: 1_200,
      releaseRate: 0.9,
      lazyRate: 0,
      forgetEveryMs: 6_000,
      // New processes look at the farm, and make stores count again that nobody has written to since.
      crashEveryMs: 3_000,
      lifeMs: 4_000,
      endMs: 80_000,
    },
  },
  {
    name: "S: a look that raises the bound on epochs confirms nothing until the stores know it",
    faults: { boundDelaysConfirmation: true },
    ground: "paper",
    breaks: "renewal",
    seed: 55,
    plan: { lazyRate: 0, replaceEveryMs: Infinity },
  },
  {
    name: "S: a renewal relies on a look that is about to be too old",
    faults: { looksTooLate: true },
    ground: "paper",
    breaks: "renewal",
    seed: 37,
    plan: {
      ...calm,
      ...slotted,
      leaseMs: 1_200,
      lazyRate: 0.5,
      silent: 1,
      releaseRate: 0.1,
      sluggishRate: 0,
    },
  },
  {
    name: "S: a store that has forgotten counts at once",
    faults: { forgottenStoreCounts: true },
    ground: "conditional",
    breaks: "exclusion",
    seed: 18,
  },
  {
    name: "S: a break is complete once one store has noted it",
    faults: { brokenByOne: true },
    ground: "conditional",
    breaks: "broken",
    seed: 2,
    plan: {
      ...meddling,
      ...untroubled,
      meddleEveryMs: 400,
      slowRate: 0.4,
      stableFromMs: 30_000,
      endMs: 40_000,
    },
  },
  ...meddled.map(([name, mistake, breaks]): Stored => ({
    name,
    faults: { [mistake]: true },
    ground: "conditional",
    breaks,
    seed: 1,
    plan: meddling,
  })),
];

/** If a change has made a seed useless, the search goes on for this many runs. */
const runsMax = 600;

export function searchStored({ faults, ground, breaks, seed, plan }: Stored): Promise<StorageBatch> {
  return duringFaults(faults, () =>
    simulateStorageMany({
      firstSeed: seed,
      ground,
      only: [breaks],
      plan: { ...soundMachines, ...plan },
      goOn: (runs) => runs < runsMax,
    }),
  );
}
