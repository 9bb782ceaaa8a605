import { expect, it } from "vitest";
import { failureText } from "../kit/simulator.js";
import type { Ground, StoragePlan } from "./stage/plan.js";
import { simulateStorageMany } from "./run.js";

/**
 * Many seeds when a mistake is planted in a driver (`npm run planted -- tests`), because some must reveal it;
 * few otherwise.
 */
const runsMax = Number(process.env["LEASEHOLD_SEEDS"] ?? 4);

/** No faults except those of a row. */
const calm: Partial<StoragePlan> = {
  delayMs: 50,
  leaseMs: 800,
  mixedLeases: false,
  silent: 0,
  crashEveryMs: Infinity,
  pauseEveryMs: Infinity,
  stallEveryMs: Infinity,
  forgetEveryMs: Infinity,
  replaceEveryMs: Infinity,
  stepEveryMs: Infinity,
  suspendEveryMs: Infinity,
  programs: 1,
  lifeMs: Infinity,
  cancelRate: 0,
  tornRate: 0,
};

/** Programs want one lease all the time, on machines whose clocks are at fault. */
const wanted: Partial<StoragePlan> = {
  ...calm,
  kinds: ["atomic", "atomic", "atomic"],
  clockRateError: 0,
  clockDrift: 0,
  processes: 3,
  slowRate: 0,
  stableFromMs: 20_000,
  endMs: 20_000,
  thinkMeanMs: 50,
};

/** Situations in which mistakes of drivers show. */
const bad: readonly {
  readonly what: string;
  readonly ground: Ground;
  readonly plan: Partial<StoragePlan>;
}[] = [
  {
    what: "stores that answer long after they were asked",
    ground: "conditional",
    plan: {
      ...calm,
      delayMs: 100,
      leaseMs: 1_200,
      kinds: ["atomic"],
      slowRate: 1,
      slowMaxMs: 60,
      clockRateError: 0,
      clockDrift: 0,
      stableFromMs: 40_000,
      endMs: 40_000,
      processes: 3,
      lazyRate: 0.8,
    },
  },
  {
    what: "processes that are stopped while another store takes a store's place",
    ground: "conditional",
    plan: {
      ...calm,
      kinds: ["atomic", "atomic", "atomic"],
      processes: 4,
      slowRate: 0.3,
      slowMaxMs: 3_000,
      pauseEveryMs: 1_500,
      pauseMaxMs: 5_000,
      stallEveryMs: 2_000,
      replaceEveryMs: 2_000,
      stableFromMs: 60_000,
      endMs: 60_000,
      thinkMeanMs: 50,
      releaseRate: 0.3,
    },
  },
  {
    what: "claims of the paper's lease while answers come late",
    ground: "paper",
    plan: {
      ...calm,
      kinds: ["slotted", "slotted", "slotted"],
      processes: 4,
      sluggishRate: 0.5,
      slowRate: 0,
      stableFromMs: 0,
      endMs: 30_000,
      thinkMeanMs: 100,
      releaseRate: 0.5,
    },
  },
  {
    what: "system clocks that are set while two programs of each process want the lease",
    ground: "forms",
    plan: { ...wanted, stepEveryMs: 1_000, stepLeasesMax: 1.5, programs: 2 },
  },
  {
    what: "machines that are suspended",
    ground: "forms",
    plan: { ...wanted, suspendEveryMs: 1_500 },
  },
  {
    what: "a store that hangs and goes on",
    ground: "conditional",
    plan: {
      ...calm,
      kinds: ["atomic", "atomic", "atomic"],
      processes: 2,
      slowRate: 0,
      stallEveryMs: 2_000,
      pauseMaxMs: 1_000,
      stableFromMs: 20_000,
      endMs: 50_000,
      thinkMeanMs: 100,
      releaseRate: 0.3,
    },
  },
];

it.each(bad)("drivers break nothing on the ground $ground with $what", async ({ ground, plan }) => {
  const { failed } = await simulateStorageMany({
    firstSeed: 1,
    ground,
    plan,
    goOn: (runs) => runs < runsMax,
  });
  expect(failed && failureText(failed)).toBeUndefined();
});
