import type { Faults } from "../../src/flease/faults.js";
import type { ClockMode } from "../../src/sim/clocks.js";
import type { Invariant } from "../../src/sim/violation.js";
import type { WorldMistakes } from "../../src/sim/world.js";

/** A mistake, where it shows, and the seed that shows it: the search begins there, so that it is quick. */
export interface Simulated {
  readonly name: string;
  readonly faults?: Partial<Faults>;
  readonly mistakes?: WorldMistakes;
  readonly mode: ClockMode;
  readonly breaks: Invariant;
  readonly seed: number;
}

/** What would hide a mistake is taken away: the other net, or the test of the other clock. */
const ballotsAlone = { netGOff: true };
const wallAlone = { rateTestOff: true };

/** Mistakes that random runs find. */
export const simulated: readonly Simulated[] = [
  { name: "P1: no recovery wait", faults: { noRecoveryWait: true }, mode: "c", breaks: "I1", seed: 6 },
  {
    name: "P5: no safety period",
    faults: { noSafetyPeriod: true, ...wallAlone },
    mode: "c",
    breaks: "I1",
    seed: 722,
  },
  {
    name: "P8: ballots are equal within the skew",
    faults: { ballotsEqualWithinSkew: true, ...ballotsAlone },
    mode: "c",
    breaks: "I1",
    seed: 1078,
  },
  {
    name: "P10: the holder ignores that its lease is over",
    faults: { holderIgnoresExpiry: true },
    mode: "c",
    breaks: "I1",
    seed: 2,
  },
  { name: "P11: anybody can release", faults: { releaseByAnybody: true }, mode: "c", breaks: "I1", seed: 8 },
  {
    name: "P12: the release goes out before the holder has stopped",
    faults: { releaseBeforeStopping: true },
    mode: "c",
    breaks: "I1",
    seed: 1,
  },
  {
    name: "P13: late acknowledgements count",
    faults: { lateAcksCount: true },
    mode: "c",
    breaks: "I12",
    seed: 4,
  },
  {
    name: "P13: late acknowledgements count",
    faults: { lateAcksCount: true },
    mode: "c",
    breaks: "I1",
    seed: 8,
  },
  {
    name: "P14: a release frees whatever ballot",
    faults: { unconditionalRelease: true, ...ballotsAlone },
    mode: "c",
    breaks: "I1",
    seed: 5,
  },
  {
    name: "P15: a renewal skips the promise",
    faults: { renewalSkipsPromiseCheck: true, ...ballotsAlone },
    mode: "c",
    breaks: "I1",
    seed: 129,
  },
  {
    name: "P17: an undecided fast attempt is renewed",
    faults: { renewalAfterUndecidedFastAttempt: true, ...ballotsAlone },
    mode: "c",
    breaks: "I1",
    seed: 1,
  },
  {
    name: "P18: only the highest ballot is read",
    faults: { onlyHighestBallotIsRead: true, ...ballotsAlone },
    mode: "c",
    breaks: "I1",
    seed: 6,
  },
  {
    name: "P19: a fast acquisition asks not whether it is free",
    faults: { fastAcquireWithoutFreeTest: true },
    mode: "c",
    breaks: "I1",
    seed: 1,
  },
  { name: "P20: less than a majority", faults: { smallQuorum: true }, mode: "c", breaks: "I1", seed: 1 },
  {
    name: "P20: acknowledgements are counted, not ackers",
    faults: { acksCountedNotAckers: true },
    mode: "c",
    breaks: "I1",
    seed: 1,
  },
  {
    name: "P24: a renewal shortens the guard",
    faults: { renewalShortensGuard: true },
    mode: "c",
    breaks: "I7",
    seed: 2,
  },
  {
    name: "P25: a lapsed tenure is opened again",
    faults: { lapsedTenureReopened: true },
    mode: "c",
    breaks: "I14",
    seed: 4,
  },
  {
    name: "P26: the bounds on the time are swapped",
    faults: { clockBoundsSwapped: true },
    mode: "a",
    breaks: "I1",
    seed: 28,
  },
  {
    name: "P27: over by either clock",
    faults: { overByEitherClock: true },
    mode: "b",
    breaks: "I1",
    seed: 28,
  },
  {
    name: "P27: over by either clock",
    faults: { overByEitherClock: true },
    mode: "a",
    breaks: "I1",
    seed: 1086,
  },
  {
    name: "P28: leases are judged by the steady clock alone",
    faults: { wallTestOff: true },
    mode: "a",
    breaks: "I1",
    seed: 2,
  },
  {
    name: "P28: leases are judged by the wall clock alone",
    faults: wallAlone,
    mode: "b",
    breaks: "I1",
    seed: 28,
  },
  { name: "P31: ballots are not compared", faults: { netBOff: true }, mode: "c", breaks: "I2", seed: 28 },
  {
    name: "P34: the ballots of one proposer do not increase",
    faults: { ballotsNotIncreasing: true },
    mode: "c",
    breaks: "I9",
    seed: 6,
  },
  {
    name: "P35: an abandoned renewal is released",
    faults: { abandonedRenewalReleased: true },
    mode: "c",
    breaks: "I1",
    seed: 4,
  },
  {
    name: "P36: ballots from the upper bound of the clock",
    faults: { ballotsFromUpperClock: true },
    mode: "a",
    breaks: "I9",
    seed: 1,
  },
  {
    name: "P38: a reading from before the message arrived",
    mistakes: { staleReading: true },
    mode: "b",
    breaks: "I4",
    seed: 138,
  },
  {
    name: "P39: the lower bound never goes back",
    faults: { lowerClockMonotone: true },
    mode: "e",
    breaks: "I13",
    seed: 1,
  },
  {
    name: "P40: two proposers share an incarnation",
    mistakes: { sharedIncarnation: true },
    mode: "c",
    breaks: "I9",
    seed: 2,
  },
  {
    name: "P40: two proposers share an incarnation",
    mistakes: { sharedIncarnation: true },
    mode: "c",
    breaks: "I1",
    seed: 2,
  },
  {
    name: "P43: a late renewal starts a tenure",
    faults: { lateRenewalStartsTenure: true },
    mode: "c",
    breaks: "I14",
    seed: 4,
  },
  {
    name: "P45: an acceptor forgets after a clock fault",
    faults: { clockFaultForgets: true },
    mode: "f",
    breaks: "I2",
    seed: 28,
  },
  {
    name: "P46: the bound on the end of leases from the upper bound of the clock",
    faults: { untilBoundByUpperClock: true },
    mode: "e",
    breaks: "I10",
    seed: 9,
  },
  {
    name: "a clock fault shortens the wait after a start",
    faults: { clockFaultShortensWait: true },
    mode: "f",
    breaks: "I11",
    seed: 3,
  },
];
