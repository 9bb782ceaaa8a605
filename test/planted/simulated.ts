import { type Faults } from "./switches.js";
import type { ClockMode } from "../../packages/sim/src/kit/clocks.js";
import type { Feature } from "../../packages/sim/src/flease/features.js";
import type { Invariant } from "../../packages/sim/src/flease/stage/invariants.js";
import type { WorldMistakes } from "../../packages/sim/src/flease/stage/stage.js";
import {
  abortKeepsTheTurn,
  lapsedLeaseIsReopened,
  lateGrantIsKept,
  leadsBeforeTheWorkHasEnded,
  neverRunsOut,
  tokensLagBehind,
} from "./waist-mistakes.js";

/** A mistake, the invariant that it breaks, and a seed that shows it, with which the search begins. */
export interface Simulated {
  readonly name: string;
  readonly faults: Partial<Faults>;
  readonly waistFaults: Partial<Faults>;
  readonly mistakes: WorldMistakes;
  readonly without: readonly Feature[];
  readonly mode: ClockMode;
  readonly breaks: Invariant;
  readonly seed: number;
}

/** Where a mistake shows: the clock mode, the invariant, and the seed. */
type Finding = `${ClockMode} ${Invariant} ${number}`;

/** Features outside the protocol, which would only dilute runs for the protocol's mistakes. */
const besideTheProtocol = [
  "waist",
  "clients-that-come-and-go",
  "cells",
  "views",
] as const satisfies Feature[];

const inProtocol = (name: string, faults: Partial<Faults>, ...findings: Finding[]) =>
  findings.map((finding) => row(name, finding, { faults, without: besideTheProtocol }));

const inWorld = (name: string, mistakes: WorldMistakes, ...findings: Finding[]) =>
  findings.map((finding) => row(name, finding, { mistakes, without: besideTheProtocol }));

const onWaist = (name: string, mistakes: WorldMistakes, ...findings: Finding[]) =>
  findings.map((finding) => row(name, finding, { mistakes, without: ["jobs", "sharers"] }));

const inViews = (name: string, faults: Partial<Faults>, ...findings: Finding[]) =>
  findings.map((finding) => row(name, finding, { faults, without: ["waist"] }));

const inWaist = (name: string, waistFaults: Partial<Faults>, ...findings: Finding[]) =>
  findings.map((finding) => row(name, finding, { waistFaults }));

function row(name: string, finding: Finding, planted: Partial<Simulated>): Simulated {
  const [mode, breaks, seed] = finding.split(" ") as [ClockMode, Invariant, string];
  return {
    name,
    faults: {},
    waistFaults: {},
    mistakes: {},
    without: [],
    ...planted,
    mode,
    breaks,
    seed: Number(seed),
  };
}

/**
 * The other protection, which would hide a mistake, is removed: the other net, or the test of the other
 * clock.
 */
const ballotsAlone = { netGOff: true };
const wallAlone = { rateTestOff: true };

/** Mistakes that random runs find. */
export const simulated: readonly Simulated[] = [
  ...inProtocol("P1: no recovery wait", { noRecoveryWait: true }, "c I1 92", "c I15 5"),
  ...inProtocol("P5: no safety period", { noSafetyPeriod: true, ...wallAlone }, "c I1 722", "c I6 2"),
  ...inProtocol(
    "P8: ballots are equal within the skew",
    { ballotsEqualWithinSkew: true, ...ballotsAlone },
    "c I1 1170",
  ),
  ...inProtocol("P10: the holder ignores that its lease is over", { holderIgnoresExpiry: true }, "c I1 2"),
  ...inProtocol("P11: anybody can release", { releaseByAnybody: true }, "c I1 91"),
  ...inProtocol(
    "P12: the release goes out before the holder has stopped",
    { releaseBeforeStopping: true },
    "c I1 1",
  ),
  ...inProtocol("P13: late acknowledgements count", { lateAcksCount: true }, "c I12 4", "c I1 21"),
  ...inProtocol(
    "P14: a release frees whatever ballot",
    { unconditionalRelease: true, ...ballotsAlone },
    "c I1 5",
  ),
  ...inProtocol(
    "P15: a renewal skips the promise",
    { renewalSkipsPromiseCheck: true, ...ballotsAlone },
    "c I1 551",
  ),
  ...inProtocol(
    "P17: an undecided fast attempt is renewed",
    { renewalAfterUndecidedFastAttempt: true, ...ballotsAlone },
    "c I1 1",
  ),
  ...inProtocol(
    "P18: only the highest ballot is read",
    { onlyHighestBallotIsRead: true, ...ballotsAlone },
    "c I1 9",
  ),
  ...inProtocol(
    "P19: a fast acquisition asks not whether it is free",
    { fastAcquireWithoutFreeTest: true },
    "c I1 1",
  ),
  ...inProtocol("P20: less than a majority", { smallQuorum: true }, "c I1 1", "c I3 107"),
  ...inProtocol("P20: acknowledgements are counted, not ackers", { acksCountedNotAckers: true }, "c I1 1"),
  ...inProtocol("P24: a renewal shortens the guard", { renewalShortensGuard: true }, "c I7 2"),
  ...inProtocol("P25: a lapsed tenure is opened again", { lapsedTenureReopened: true }, "c I14 8"),
  // This no longer leads to two holders: clocks that are far enough apart for that end every hold.
  ...inProtocol("P26: the bounds on the time are swapped", { clockBoundsSwapped: true }, "a I13 1"),
  ...inProtocol("P27: over by either clock", { overByEitherClock: true }, "b I1 28"),
  ...inProtocol("P28: leases are judged by the steady clock alone", { wallTestOff: true }, "a I1 114"),
  ...inProtocol("P28: leases are judged by the wall clock alone", wallAlone, "b I1 28"),
  ...inProtocol("P31: ballots are not compared", { netBOff: true }, "c I2 75"),
  ...inProtocol(
    "P34: the ballots of one proposer do not increase",
    { ballotsNotIncreasing: true },
    "c I9 6",
    "c I8 12",
  ),
  ...inProtocol("P35: an abandoned renewal is released", { abandonedRenewalReleased: true }, "c I1 5"),
  ...inProtocol("P36: ballots from the upper bound of the clock", { ballotsFromUpperClock: true }, "a I9 9"),
  ...inProtocol("P39: the lower bound never goes back", { lowerClockMonotone: true }, "e I13 1"),
  ...inWorld("P40: two proposers share an incarnation", { sharedIncarnation: true }, "c I9 2", "c I1 2"),
  ...inProtocol("P43: a late renewal starts a tenure", { lateRenewalStartsTenure: true }, "c I14 8"),
  ...inProtocol(
    "P45: an acceptor forgets after a clock fault",
    { clockFaultForgets: true },
    "f I2 140",
    "f I5 1",
  ),
  ...inProtocol(
    "P46: the bound on the end of leases from the upper bound of the clock",
    { untilBoundByUpperClock: true },
    "e I10 274",
  ),
  ...inProtocol(
    "P50: only a step back ends holds at once",
    { onlyStepBackEndsHoldsAtOnce: true },
    "g I1 59",
    "e I1 595",
  ),
  ...inProtocol(
    "P51: the thread of a program ignores that its clocks disagree",
    { programThreadTrustsClocks: true },
    "g I1 23",
  ),
  ...inProtocol(
    "P52: the guard ignores the rates of clocks",
    { guardIgnoresRates: true },
    "b I1 273",
    "b I4 1",
  ),
  ...inProtocol(
    "a clock fault shortens the wait after a start",
    { clockFaultShortensWait: true },
    "f I11 11",
  ),

  ...inWorld("P41: cells of different size", { mixedCells: true }, "c I1 1"),
  ...inWorld("P47: started below its earlier readings", { earlyStart: true }, "f I11 7", "f I2 141"),

  ...inViews("P37: a change before the last one is over", { nextChangeTooEarly: true }, "c I16 5"),
  ...inViews("P37: no wait in the joint view", { noWaitInJointView: true }, "c I16 2"),
  ...inViews("P37: the own wait is enough", { ownWaitIsEnough: true }, "c I16 30"),
  ...inViews("P37: too many are left in the view before", { tooManyStragglers: true }, "c I16 161"),
  ...inViews("P42: members change without a joint view", { membersChangeAtOnce: true }, "c I16 2"),
  ...inViews("P48: a restart goes back to an older view", { viewIsNotKept: true }, "c I16 8"),
  ...inViews("P48: a restart ends the joint view", { restartEndsJointView: true }, "c I16 12"),
  ...inViews("P53: a lost file is the founding list", { foundingListAfterLostFile: true }, "c I16 1"),
  ...inViews("P54: a member counts before it votes", { countsBeforeItVotes: true }, "c I16 1"),
  ...inViews("P49: a joint quorum of the old cell", { jointQuorumOfOldCell: true }, "c I16 2"),
  ...inViews("P49: a joint quorum of the new cell", { jointQuorumOfNewCell: true }, "c I16 2", "c I1 5"),
  ...inViews("P49: acknowledgements of two views", { acksOfViewsMixed: true }, "c I16 12"),
  ...inViews("P49: a change of views forgets", { viewChangeForgets: true }, "c I1 2"),

  ...onWaist("the waist reports an expired lease as held", { provider: neverRunsOut }, "c I1 9", "c I14 6"),
  ...onWaist("a lapsed lease is opened again", { leases: lapsedLeaseIsReopened }, "c I14 28"),
  ...onWaist("an aborted call blocks the queue", { provider: abortKeepsTheTurn }, "c L1 3"),
  ...onWaist("a grant to an aborted call is kept", { provider: lateGrantIsKept }, "c L1 24"),
  ...onWaist("a lease has the token of the tenure before", { leases: tokensLagBehind }, "c I2 3"),
  ...onWaist(
    "a campaign leads before the former work has ended",
    { leases: leadsBeforeTheWorkHasEnded },
    "c I1 91",
  ),
  ...inWaist("a queue that is still used is dropped", { emptyQueueIsDropped: true }, "a I1 116"),
  ...inWaist("a writer skips slots of readers", { writerSkipsSlots: true }, "c I1 37"),
  ...inWaist("a call without a mode does not look for readers", { plainIsNoWriter: true }, "c I1 3"),
];
