import type { Faults } from "./switches.js";
import type { Bounds } from "../../packages/sim/src/explorer/bounds.js";
import type { FleaseWorld } from "../../packages/sim/src/explorer/flease-model.js";

/** A small world in which nothing must be found. */
export interface SoundWorld {
  readonly name: string;
  /** The halves of the protection that are removed, so that the other half must suffice. */
  readonly faults: Partial<Faults>;
  readonly world: Partial<FleaseWorld>;
  readonly bounds: Partial<Bounds>;
}

const wallAlone = { rateTestOff: true };
const exact = { skew: 0 };
const exactly = { clockDifferenceMax: 0 };
const quick = { fast: true, twoPhase: false };
const guardAlone = { ...wallAlone, netBOff: true };
const ballotsAlone = { ...wallAlone, netGOff: true };

/** The default worlds: about a minute, and less than ten on a slow core. */
export const worlds: readonly SoundWorld[] = [
  {
    name: "as in the product, two phases, ε = 1",
    faults: {},
    world: { steadyClocks: true, ttlMax: 1 },
    bounds: { timeMax: 1 },
  },
  {
    name: "as in the product, one round trip, exact clocks, a crash, a renewal",
    faults: {},
    world: { ...exact, ...quick, steadyClocks: true, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 2, crashes: 1, renewals: [1, 0] },
  },
  {
    name: "both nets on the wall clock alone, tokens, renewal and release",
    faults: wallAlone,
    world: { ...exact, ...quick, releases: true },
    bounds: { ...exactly, timeMax: 2, renewals: [1, 0], checkTokens: true },
  },
  {
    name: "ballots alone, two phases, a crash (F1 with its repair)",
    faults: ballotsAlone,
    world: { ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 2, crashes: 1 },
  },
  {
    name: "ballots alone, two phases, discarding",
    faults: ballotsAlone,
    world: { ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 2, discards: 1 },
  },
  {
    name: "the guard alone, two phases, a crash",
    faults: guardAlone,
    world: { ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 1, crashes: 1 },
  },
];

/** The worlds for a night, with some gigabytes of memory. */
export const nightWorlds: readonly SoundWorld[] = [
  ...worlds,
  {
    name: "as in the product, two phases, ε = 1, for longer",
    faults: {},
    world: { steadyClocks: true, ttlMax: 1 },
    bounds: { timeMax: 2 },
  },
  {
    name: "as in the product, one round trip, ε = 1, a crash",
    faults: {},
    world: { ...quick, steadyClocks: true, ttlMax: 1 },
    bounds: { timeMax: 3, crashes: 1 },
  },
  {
    name: "the guard alone, one round trip, ε = 1, a crash",
    faults: guardAlone,
    world: { ...quick, ttlMax: 1 },
    bounds: { timeMax: 3, crashes: 1 },
  },
  {
    name: "both nets on the wall clock alone, two phases, ε = 1, a crash",
    faults: wallAlone,
    world: { ttlMax: 1 },
    bounds: { timeMax: 4, crashes: 1 },
  },
  {
    name: "ballots alone, two phases, ε = 1, a crash",
    faults: ballotsAlone,
    world: { ttlMax: 1 },
    bounds: { timeMax: 4, crashes: 1 },
  },
  {
    name: "both nets, two phases, three ballots, renewal and release",
    faults: wallAlone,
    world: { ...exact, releases: true },
    bounds: { ...exactly, timeMax: 2, acquisitions: [2, 1], renewals: [1, 0], checkTokens: true },
  },
  {
    name: "both nets, one round trip and two, refusals that come late",
    faults: wallAlone,
    world: { ...exact, fast: true, releases: true },
    bounds: { ...exactly, timeMax: 1, lateRefusals: true, checkTokens: true },
  },
  {
    name: "both nets, three ballots, two crashes, discarding and breaking",
    faults: wallAlone,
    world: { ...exact, ...quick, ttlMax: 1 },
    bounds: {
      ...exactly,
      timeMax: 3,
      acquisitions: [2, 1],
      crashes: 2,
      discards: 1,
      bars: 1,
      checkTokens: true,
    },
  },
];
