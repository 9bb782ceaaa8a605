import type { Faults } from "./switches.js";
import type { Bounds } from "../../packages/sim/src/explorer/bounds.js";
import type { FleaseWorld } from "../../packages/sim/src/explorer/flease-model.js";
import type { Wrong } from "../../packages/sim/src/explorer/world.js";

/** A mistake that the explorer finds, and the small world in which it does so. */
export interface Explored {
  readonly name: string;
  readonly faults: Partial<Faults>;
  readonly world: Partial<FleaseWorld>;
  readonly bounds: Partial<Bounds>;
  readonly breaks: Wrong["invariant"];
}

/**
 * The other protection, which would hide a mistake, is removed: the other net, or the test of the other
 * clock.
 */
const wallAlone = { rateTestOff: true };
const ballotsAlone = { rateTestOff: true, netGOff: true };

/** Clocks that agree, for mistakes that don't depend on clocks: there are fewer states. */
const exact = { skew: 0 };
const exactly = { clockDifferenceMax: 0 };
/** Acquisitions in one round trip only. */
const quick = { fast: true, twoPhase: false };

/**
 * The mistakes, each with bounds that are just wide enough. Random runs don't find most of them in reasonable
 * time.
 */
export const explored: readonly Explored[] = [
  {
    name: "P1: no recovery wait",
    faults: { noRecoveryWait: true, ...wallAlone },
    world: { ...exact, ...quick, ttlMax: 3 },
    bounds: { ...exactly, timeMax: 2, crashes: 1 },
    breaks: "I1",
  },
  {
    name: "P2: a recovery wait of t_max",
    faults: { waitOnlyTtlMax: true, noFloor: true, ...wallAlone },
    world: { ...quick, ttlMax: 1 },
    bounds: { timeMax: 1, crashes: 1 },
    breaks: "I1",
  },
  {
    name: "P3: a recovery wait of t_max + ε",
    faults: { waitTtlMaxAndOneSkew: true, noFloor: true, ...wallAlone },
    world: { ...quick, ttlMax: 1 },
    bounds: { timeMax: 1, crashes: 1 },
    breaks: "I1",
  },
  {
    name: "P4: no floor at the rejoin",
    faults: { noFloor: true, ...ballotsAlone },
    world: { ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 2, crashes: 1 },
    breaks: "I1",
  },
  {
    name: "P5: no safety period",
    faults: { noSafetyPeriod: true, ...wallAlone },
    world: { ...quick, ttlMax: 1 },
    bounds: { timeMax: 1 },
    breaks: "I1",
  },
  {
    name: "P6: the safety period is one tick short",
    faults: { safetyPeriodOneTickShort: true, ...wallAlone },
    world: { ...quick, skew: 2, ttlMax: 1 },
    bounds: { timeMax: 1, clockDifferenceMax: 2 },
    breaks: "I1",
  },
  {
    name: "P7: an incarnation survives a restart",
    faults: wallAlone,
    world: { ...exact, ...quick, ttlMax: 1, sameIncarnation: true },
    bounds: { ...exactly, timeMax: 1, acquisitions: [2, 1], restarts: [1, 0] },
    breaks: "I12",
  },
  {
    name: "P9: two clock readings in one decision",
    faults: { twoClockReadings: true, ...ballotsAlone },
    world: { skew: 2, ttlMax: 1 },
    bounds: { timeMax: 0, clockDifferenceMax: 2 },
    breaks: "I1",
  },
  {
    name: "P10: the holder ignores that its lease is over",
    faults: { holderIgnoresExpiry: true, ...wallAlone },
    world: { ...exact, ...quick, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 1 },
    breaks: "I1",
  },
  {
    name: "P16: a renewal in a new ballot without a READ",
    faults: { renewalWithFreshBallotWithoutRead: true, ...ballotsAlone },
    world: { ...exact, ...quick, ttlMax: 3 },
    bounds: { ...exactly, timeMax: 3, acquisitions: [2, 1], renewals: [1, 0] },
    breaks: "I1",
  },
  {
    name: "P20: less than a majority",
    faults: { smallQuorum: true, ...wallAlone },
    world: { ...exact, ...quick },
    bounds: { ...exactly, timeMax: 0 },
    breaks: "I1",
  },
  {
    name: "P21: leases of any length are accepted",
    faults: { anyLengthAccepted: true, ...wallAlone },
    world: { ...exact, ...quick, ttlMax: 1, ttls: [4] },
    bounds: { ...exactly, timeMax: 3, crashes: 1 },
    breaks: "I1",
  },
  {
    name: "P22: clocks further apart than ε",
    faults: wallAlone,
    world: { ...quick, ttlMax: 1 },
    bounds: { timeMax: 1, clockDifferenceMax: 2 },
    breaks: "I1",
  },
  {
    name: "P23: a restart with a clock set back further than ε",
    faults: { noFloor: true, ...wallAlone },
    world: { ...quick, ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 1, crashes: 1, restartStepBackMax: 1 },
    breaks: "I1",
  },
  {
    name: "P32: discarding without raising the floor",
    faults: { discardWithoutFloor: true, ...ballotsAlone },
    world: { ...exact, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 2, discards: 1 },
    breaks: "I1",
  },
  {
    name: "P33: a cached answer to whether it is held",
    faults: { heldIsCached: true, ...wallAlone },
    world: { ...exact, ...quick, ttlMax: 1 },
    bounds: { ...exactly, timeMax: 1 },
    breaks: "I1",
  },
  {
    name: "breaking a lease frees the resource at once",
    faults: { barFrees: true, ...wallAlone },
    world: { ...exact, ...quick },
    bounds: { ...exactly, timeMax: 1, bars: 2 },
    breaks: "I1",
  },
];
