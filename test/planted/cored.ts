import { type Fault, type Faults, duringFaults } from "./switches.js";
import {
  bulky,
  ending,
  patient,
  streaming,
  type CoreForm,
  type CorePlan,
} from "../../packages/sim/src/core/world/plan.js";
import { type CoreBatch, simulateCoreMany } from "../../packages/sim/src/core/run.js";
import type { CoreInvariant } from "../../packages/sim/src/core/world/invariants.js";
import { restoring } from "./restoring.js";
import { timedMistakes } from "./timed.js";

/** A mistake in the consistent core, the invariant that it breaks, and a seed that shows it. */
export interface Cored {
  readonly name: string;
  readonly faults: Partial<Faults>;
  readonly raftFaults?: Partial<Faults>;
  /** Mistakes in the client's half. */
  readonly waistFaults?: Partial<Faults>;
  readonly breaks: CoreInvariant;
  readonly seed: number;
  readonly plan?: Partial<CorePlan>;
}

/** Servers join and leave, and clients do little. */
const changing: Partial<CorePlan> = {
  membershipEveryMs: 500,
  watchClients: 0,
  leaseClients: 0,
  bulkKeys: 0,
  turnMs: 0,
};

/** Clients with leases of the given forms, and no other clients. */
const holding = (...forms: readonly CoreForm[]): Partial<CorePlan> => ({
  forms,
  servers: 3,
  watchClients: 0,
  leaseClients: 0,
  registerClients: 0,
  bulkKeys: 0,
  turnMs: 0,
  membershipEveryMs: undefined,
  // Servers that are introduced one after another need the operator, which is one of the clients left out.
  introduced: undefined,
});

/** Permissions change, and no other clients are active. */
const usersOnly: Partial<CorePlan> = {
  rights: true,
  registerClients: 0,
  watchClients: 0,
  leaseClients: 0,
  bulkKeys: 0,
  turnMs: 0,
};

/** Several watches on one stream, with all of their options, and no other watch or lease clients. */
const streamsOnly: Partial<CorePlan> = {
  ...streaming,
  servers: 3,
  registerClients: 1,
  watchClients: 0,
  leaseClients: 0,
  turnMs: 0,
  forms: undefined,
  rights: undefined,
  membershipEveryMs: undefined,
  introduced: undefined,
  restores: undefined,
  bytesPerMs: undefined,
};

const mistakesOfStreams: readonly (readonly [name: string, mistake: Fault, seed: number])[] = [
  ["C: filters of a watch are swapped", "filtersSwapped", 1],
  ["C: a watch that begins in the past lacks the values from before", "pastWithoutEarlier", 1],
  ["C: all fragments of a revision except the last are lost", "fragmentsAreLost", 1],
  ["C: a watch gets the id of a cancelled watch", "idsComeAgain", 1],
  ["C: a stream reports the progress of its first watch", "progressOfOneWatch", 1],
  ["C: a part of a revision is sent as the whole", "partEndsRevision", 1],
  ["C: a cancelled watch gets more events", "cancelledHears", 1],
  ["C: a watch that is behind gets a progress notification", "noticeWhileBehind", 3],
  ["C: progress notifications come with every tick", "noticeEachTick", 1],
  ["C: no progress notification comes", "noNotices", 1],
];

const rowsOfStreams: readonly Cored[] = mistakesOfStreams.map(([name, mistake, seed]) => ({
  name,
  faults: { [mistake]: true },
  breaks: "watch",
  seed,
  plan: streamsOnly,
}));

export const cored: readonly Cored[] = [
  {
    name: "C: a write is answered when it is proposed",
    faults: { answeredWhenProposed: true },
    breaks: "linearizability",
    seed: 1,
  },
  {
    name: "C: a vote is not persisted",
    faults: {},
    raftFaults: { voteNotPersisted: true },
    breaks: "agreement",
    seed: 12,
    // Two candidates stand in one term, and a server that has voted for one of them is back before the other
    // asks. No server holds to a leader: otherwise a restarted server wouldn't vote so soon.
    plan: {
      servers: 5,
      tickMs: 10,
      electionTicks: 4,
      holdShare: 0,
      latencyMs: 10,
      lossRate: 0,
      writeMs: 0.5,
      slowDiskFactor: 1,
      crashEveryMs: 20,
      downMsMax: 3,
      partitionEveryMs: Infinity,
      pauseEveryMs: Infinity,
      membershipEveryMs: undefined,
      registerClients: 0,
      leaseClients: 0,
      watchClients: 0,
      bulkKeys: 0,
      turnMs: 0,
      stableFromMs: 3_000,
      endMs: 3_050,
    },
  },
  {
    name: "C: a read without a round",
    faults: {},
    raftFaults: { readWithoutRound: true },
    breaks: "linearizability",
    seed: 111,
  },
  {
    name: "C: one of five servers confirms a read by asking for it",
    faults: {},
    raftFaults: { askerOfFiveSuffices: true },
    breaks: "linearizability",
    seed: 544,
    plan: { servers: 5 },
  },
  {
    name: "C: expiry by a follower",
    faults: { followersEndLeases: true },
    breaks: "agreement",
    seed: 1,
  },
  {
    name: "C: a refresh by a deposed leader",
    faults: { refreshWithoutRound: true },
    breaks: "refresh",
    seed: 7,
    plan: { servers: 3, pauseEveryMs: 3_000, pauseMaxMs: 8_000, leaseClients: 10, crashEveryMs: Infinity },
  },
  {
    name: "C: duplicates are refused only before proposing",
    faults: { duplicatesUncheckedAtApply: true },
    breaks: "lease-names",
    seed: 1,
  },
  {
    name: "C: keys are left behind",
    faults: { keysLeftBehind: true },
    breaks: "lease-keys",
    seed: 1,
  },
  {
    name: "C: a lease is removed before its expiry commits",
    faults: { removedBeforeCommitted: true },
    breaks: "agreement",
    seed: 1,
  },
  {
    name: "C: a lease is refreshed after its end was proposed",
    faults: { refreshAfterEndProposed: true },
    breaks: "lease-life",
    seed: 28,
  },
  {
    name: "C: a refresh is answered before the grant is applied",
    faults: { refreshBeforeApplied: true },
    breaks: "lease-life",
    seed: 400,
  },
  {
    name: "C: a new leader doesn't extend leases",
    faults: { noExtraLife: true },
    breaks: "lease-life",
    seed: 1,
  },
  {
    name: "C: a holder ignores clock rates",
    faults: {},
    waistFaults: { ratesIgnored: true },
    breaks: "lease-life",
    seed: 1,
  },
  {
    name: "C: a refresh leaves the old remaining time recorded",
    faults: { oldTimeStays: true },
    breaks: "lease-life",
    seed: 9,
    plan: {
      leaseClients: 10,
      watchClients: 0,
      bulkKeys: 0,
      registerClients: 1,
      clusterTimeMs: 1_500,
      transferEveryMs: 6_000,
    },
  },
  {
    name: "C: a slow watch skips changes",
    faults: { slowWatcherSkips: true },
    breaks: "watch",
    seed: 6,
  },
  {
    name: "C: a write that may have been proposed is proposed again",
    faults: { proposedTwice: true },
    breaks: "linearizability",
    seed: 2,
    plan: {
      watchClients: 0,
      leaseClients: 0,
      bulkKeys: 0,
      registerClients: 8,
      transferEveryMs: 2_000,
      timeoutMs: 5_000,
    },
  },
  {
    name: "C: a key's whole history is one piece of a snapshot",
    faults: { historyInOnePiece: true },
    breaks: "durability",
    seed: 1,
  },
  {
    name: "C: only clients compact",
    faults: { historyGrows: true },
    breaks: "space",
    seed: 3,
  },
  {
    name: "C: compacted versions still count",
    faults: { bytesStay: true },
    breaks: "space",
    seed: 1,
  },
  {
    name: "C: a request that nobody waits for is kept",
    faults: { requestsStay: true },
    breaks: "space",
    seed: 4,
  },
  {
    name: "C: rights are not checked where a command is applied",
    faults: { rightsUncheckedAtApply: true },
    breaks: "rights",
    seed: 7,
  },
  {
    name: "C: a server refuses by outdated rights",
    faults: { staleRightsRefuse: true },
    breaks: "rights",
    seed: 17,
  },
  {
    name: "C: a token outlives its user",
    faults: { tokenOutlivesUser: true },
    breaks: "rights",
    seed: 7,
  },
  {
    name: "C: a server that has just started reads by outdated rights",
    faults: { readsByRightsOfThePast: true },
    breaks: "rights",
    seed: 2,
    plan: usersOnly,
  },
  {
    name: "C: a server that has just started serves watches by outdated rights",
    faults: { watchesByRightsOfThePast: true },
    breaks: "rights",
    seed: 4,
    plan: usersOnly,
  },
  {
    name: "C: a snapshot begins with a copy of the state",
    faults: { snapshotCopiedAtOnce: true },
    breaks: "turn",
    seed: 16,
    plan: bulky,
  },
  {
    name: "C: a long read is not interrupted",
    faults: { readsInOneTurn: true },
    breaks: "turn",
    seed: 8,
    plan: bulky,
  },
  {
    name: "C: a watch goes through history in one turn",
    faults: { watchesInOneTurn: true },
    breaks: "turn",
    seed: 8,
    plan: bulky,
  },
  {
    name: "C: a command that changes many keys is applied in one turn",
    faults: { commandsInOneTurn: true },
    breaks: "turn",
    seed: 8,
    plan: bulky,
  },
  {
    name: "C: compacted versions are removed in one turn",
    faults: { sweptInOneTurn: true },
    breaks: "turn",
    seed: 8,
    plan: bulky,
  },
  {
    name: "C: a long read sees later writes",
    faults: { readsMoveOn: true },
    breaks: "range",
    seed: 8,
    plan: bulky,
  },
  {
    name: "C: a long read iterates over keys that change meanwhile",
    faults: { readsLiveKeys: true },
    breaks: "range",
    seed: 16,
    plan: bulky,
  },
  {
    name: "C: the ends of leases by one command become visible one by one",
    faults: { endsReadOneByOne: true },
    breaks: "watch",
    seed: 1,
    plan: ending,
  },
  {
    name: "C: expired leases end in one revision",
    faults: { endTogether: true },
    breaks: "lease-keys",
    seed: 3,
  },
  {
    name: "C: a second change of the members before the first is committed",
    faults: {},
    raftFaults: { secondChangeAtOnce: true },
    breaks: "membership",
    seed: 224,
    plan: changing,
  },
  {
    name: "C: a learner that votes",
    faults: {},
    raftFaults: { learnerStands: true },
    breaks: "membership",
    seed: 31,
    plan: changing,
  },
  {
    name: "C: a removed server that disturbs",
    faults: {},
    raftFaults: { removedDisturbs: true },
    breaks: "undisturbed",
    seed: 1,
    plan: changing,
  },
  {
    name: "C: a server hears only the servers in its log",
    faults: { listsUnheard: true },
    breaks: "progress",
    seed: 34,
    plan: { ...changing, introduced: true },
  },
  {
    name: "C: the cluster's version is raised once one server supports it",
    faults: { raisedTooEarly: true },
    breaks: "agreement",
    seed: 1,
    plan: { ...changing, introduced: true, upgrades: true },
  },
  {
    name: "C: proposals lost with a connection are not proposed again",
    faults: { lostProposalsStayLost: true },
    breaks: "answered",
    seed: 1,
    plan: patient,
  },
  {
    name: "C: proposals that the connection to the leader has no room for are forgotten",
    faults: { notSentIsForgotten: true },
    breaks: "answered",
    seed: 1,
    plan: patient,
  },
  {
    name: "C: a repeated proposal is appended again",
    faults: { repeatedIsAppendedAgain: true },
    breaks: "linearizability",
    seed: 1,
    plan: patient,
  },
  {
    name: "C: a probed follower is sent all entries again each time",
    faults: {},
    raftFaults: { probesWithEntries: true, lateAppendIsDropped: true },
    breaks: "answered",
    seed: 7,
    plan: patient,
  },
  ...rowsOfStreams,
  ...restoring,
  {
    name: "CL: exclusive: a holder relies on its lease for twice as long",
    faults: { tenureOutlivesItsLease: true },
    breaks: "exclusion",
    seed: 1,
    plan: holding("exclusive"),
  },
  {
    name: "CL: exclusive: the core is asked for three times the ttl",
    faults: { askedForTooMuch: true },
    breaks: "aftermath",
    seed: 7,
    plan: holding("exclusive"),
  },
  {
    name: "CL: exclusive and shared: a lease ended by a clock step counts as a leftover",
    faults: {},
    waistFaults: { steppedLeaseIsLeftover: true },
    breaks: "exclusion",
    seed: 1,
    plan: { ...holding("exclusive", "shared"), holderStepEveryMs: 400 },
  },
  {
    name: "CL: shared: a writer skips slots of readers",
    faults: { writerSkipsSlots: true },
    breaks: "exclusion",
    seed: 1,
    plan: holding("shared"),
  },
  {
    name: "CL: shared: a call without a mode does not look for readers",
    faults: { plainIsNoWriter: true },
    breaks: "exclusion",
    seed: 1,
    plan: holding("shared"),
  },
  {
    name: "CL: shared: a writer gives way to readers",
    faults: { writerGivesWay: true },
    breaks: "served",
    seed: 3,
    plan: holding("shared"),
  },
  {
    name: "CL: shared: a dead reader's slot stays for three times the ttl",
    faults: { askedForTooMuch: true },
    breaks: "aftermath",
    seed: 10,
    plan: holding("shared"),
  },
  {
    name: "CL: counted: each limit has slots of its own",
    faults: { eachLimitHasItsSlots: true },
    breaks: "counted",
    seed: 1,
    plan: holding("counted"),
  },
  {
    name: "CL: counted: a holder relies on its slot for twice as long",
    faults: { tenureOutlivesItsLease: true },
    breaks: "exclusion",
    seed: 1,
    plan: holding("counted"),
  },
  {
    name: "CL: fair: the first in line is not awaited",
    faults: { firstInLineIsNotAwaited: true },
    breaks: "line",
    seed: 1,
    plan: holding("fair"),
  },
  {
    name: "CL: fair: a place is not kept",
    faults: { placeIsNotKept: true },
    breaks: "line",
    seed: 1,
    plan: holding("fair"),
  },
  {
    name: "CL: several: held as long as one of them is",
    faults: { setIsTheLongestLease: true },
    breaks: "exclusion",
    seed: 3,
    plan: holding("several"),
  },
  {
    name: "CL: several: in the order given",
    faults: { setInTheOrderGiven: true },
    breaks: "served",
    seed: 1,
    plan: holding("several"),
  },
  ...timedMistakes,
];

/** If a change has made a seed useless, the search goes on for this many runs. */
const runsMax = 300;

export function searchCore(mistake: Cored): Promise<CoreBatch> {
  const { faults, raftFaults = {}, waistFaults = {}, seed } = mistake;
  return duringFaults({ ...faults, ...raftFaults, ...waistFaults }, () => runs(mistake, seed, runsMax));
}

/**
 * Repeats the run that the mistake has broken, without the mistake: it proves something only if this run is
 * clean.
 */
export function withoutMistake(mistake: Cored, seed: number): Promise<CoreBatch> {
  return runs(mistake, seed, 1);
}

function runs({ breaks, plan }: Cored, firstSeed: number, most: number): Promise<CoreBatch> {
  return simulateCoreMany({
    firstSeed,
    only: [breaks],
    plan: { holderStepEveryMs: undefined, ...plan },
    goOn: (done) => done < most,
  });
}
