import { describe, expect, it } from "vitest";
import { type Faults, duringFaults } from "../../../../test/planted/switches.js";
import { clockModes } from "../kit/clocks.js";
import type { FleaseCounters } from "./stage/counters.js";
import type { CounterName } from "./stage/counters.js";
import type { Feature } from "./features.js";
import { drawPlan } from "./stage/plan.js";
import { SimRandom } from "../kit/random.js";
import { failureText } from "../kit/simulator.js";
import { simulate, simulateMany } from "./run.js";
import { World } from "./world.js";

/** Each net must exclude on its own as well: otherwise one would hide the other's mistakes. */
const nets: [string, Partial<Faults>, Feature[]][] = [
  ["both nets", {}, []],
  ["the guard alone", { netBOff: true }, ["waist"]],
  ["ballots alone", { netGOff: true }, ["waist"]],
];

const runsEach = 21;

/** A seed near which the broken clocks of mode d let two hold. */
const brokenClocksSeed = 670;

/** The least counts, all runs of one configuration together: well below the usual ones. */
const minima: Partial<Record<CounterName, number>> = {
  tenures: 600,
  fastWins: 150,
  fastLosses: 150,
  oneTripRenewals: 150,
  twoPhaseRenewals: 10,
  releases: 400,
  lapses: 80,
  cancellations: 150,
  takeoversAfterCrash: 15,
  takeoversAfterLapse: 40,
  takeoversOfReleased: 80,
  lateDecisions: 5,
  heldRefusals: 500,
  staleRefusals: 2,
  boundRefusals: 150,
  crashes: 200,
  rejoins: 200,
  pauses: 200,
  suspensions: 60,
  clockAlarms: 200,
  impossibleClocks: 200,
  changesBegun: 40,
  changesEnded: 30,
  viewRefusals: 300,
};

/** Counters of the lease layer only. */
const waistMinima: typeof minima = {
  automaticRenewals: 250,
  waitsServedByHint: 100,
  localHandOvers: 20,
  electionsWon: 80,
  electionsLost: 15,
  breaks: 5,
  requestsFollowed: 4,
  queriesAnswered: 100,
  changesSeen: 60,
  clientArrivals: 25,
  clientDepartures: 25,
};

/** Refusals on account of a promise: there are none without ballots. */
const ballotMinima: typeof minima = { floorRefusals: 40, promiseRefusals: 400 };

describe.each(nets)("random runs with %s", (_name, faults, without) => {
  it("break no invariant in any clock mode, and reach every case that matters", async () => {
    const { counters, failed } = await duringFaults(faults, () =>
      simulateMany({ firstSeed: 1, without, goOn: (runs) => runs < runsEach * clockModes.length }),
    );
    expect(failed && failureText(failed)).toBeUndefined();
    const wanted = {
      ...minima,
      ...(faults["netBOff"] === true ? {} : ballotMinima),
      ...(without.length === 0 ? waistMinima : {}),
    };
    const tooRare = Object.entries(wanted).filter(([name, least]) => counters[name as CounterName] < least);
    expect(tooRare).toEqual([]);
  });
});

it("a seed decides a whole run, and another seed makes another", async () => {
  for (const mode of clockModes) {
    const hashes: string[] = [];
    for (const seed of [7, 7, 8]) hashes.push((await simulate({ seed, mode })).traceHash);
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  }
});

it("checkers do not disturb what they check", async () => {
  const random = new SimRandom(5);
  const plan = drawPlan(5, "e", random);
  const unwatched = new World({ plan, random, checkers: () => [], asserted: () => false });
  await unwatched.run();
  expect(unwatched.hash.digest()).toBe((await simulate({ seed: 5, mode: "e" })).traceHash);
});

it("with both clock assumptions broken exclusion does break, and clocks are found at fault", async () => {
  const { counters, failed } = await simulateMany({
    firstSeed: brokenClocksSeed,
    modes: ["d"],
    only: ["I1"],
    without: ["waist", "clients-that-come-and-go", "cells", "views"],
    goOn: (runs) => runs < 2_000,
  });
  expect(failed?.violation?.invariant).toBe("I1");
  expect(counters.clockAlarms).toBeGreaterThan(0);
});

it("two holders are found by the checker of exclusion, and by no other", async () => {
  const { failed } = await duringFaults({ holderIgnoresExpiry: true }, () =>
    simulateMany({
      firstSeed: 2,
      modes: ["c"],
      only: ["I1"],
      without: ["waist", "clients-that-come-and-go", "cells", "views"],
      goOn: (runs) => runs < 3,
    }),
  );
  expect(failed?.violation?.invariant).toBe("I1");
});

describe("in fair weather", () => {
  const hammer = async (faults: Partial<Faults>) => {
    const { counters, failed } = await duringFaults(faults, () =>
      simulateMany({ firstSeed: 1, modes: ["c"], fairWeather: "agents", goOn: (runs) => runs < 20 }),
    );
    expect(failed && failureText(failed)).toBeUndefined();
    return counters;
  };
  const meanHandOverMs = (counters: FleaseCounters) => counters.handOverMs / counters.handOvers;

  it("contenders never starve the holder, and a released resource changes hands at once (P44)", async () => {
    const sound = await hammer({});
    expect(sound.tenures).toBeGreaterThan(150);
    expect(sound.oneTripRenewals).toBeGreaterThan(500);
    expect(meanHandOverMs(sound)).toBeLessThan(75);
    expect(sound.takeoversOfReleased).toBeGreaterThan(30);
    const mistaken = await hammer({ releasedLeaseBlocksReader: true });
    expect(mistaken.takeoversOfReleased).toBeLessThan(sound.takeoversOfReleased / 4);
    expect(meanHandOverMs(mistaken)).toBeGreaterThan(1.4 * meanHandOverMs(sound));
  });
});

describe("many members that change, and clients alone that want leases of them", () => {
  const many = {
    firstSeed: 1,
    modes: ["c"],
    many: true,
    without: ["waist", "clients-that-come-and-go"],
  } as const;

  it("break no invariant, and every resource has a holder in the end", async () => {
    const { counters, failed } = await simulateMany({ ...many, goOn: (runs) => runs < 3 });
    expect(failed && failureText(failed)).toBeUndefined();
    expect(counters.changesEnded).toBeGreaterThan(3);
  });

  it("are found if stamps have room for 32 members that begin changes", async () => {
    const { failed } = await duringFaults({ stampsOverflow: true }, () =>
      simulateMany({ ...many, goOn: (runs) => runs < 12 }),
    );
    expect(failed?.violation?.invariant).toBeDefined();
  });
});

describe("a client that wants more than members keep", () => {
  const goOn = (least: number) => (runs: number) => runs < least;

  it("takes what is free, and blocks nobody else", async () => {
    const { counters, failed } = await simulateMany({ firstSeed: 1, greedy: true, goOn: goOn(21) });
    expect(failed && failureText(failed)).toBeUndefined();
    expect(counters.fullRefusals).toBeGreaterThan(1_000);
  });

  it("finds that the first program may take everything", async () => {
    const { failed } = await duringFaults({ noQuotas: true }, () =>
      simulateMany({ firstSeed: 1, greedy: true, goOn: goOn(200) }),
    );
    expect(failed?.violation).toMatchObject({ invariant: "L1", text: expect.stringContaining("is full of") });
  });
});
