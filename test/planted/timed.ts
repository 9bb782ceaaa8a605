import type { CorePlan } from "../../packages/sim/src/core/world/plan.js";
import type { Cored } from "./cored.js";

/**
 * Leaders change all the time, and servers hold to a leader for as long as an election takes, so that the
 * clock decides.
 */
const changing: Partial<CorePlan> = {
  servers: 3,
  electionTicks: 5,
  holdShare: 1,
  clockRateError: 0.1,
  latencyMs: 8,
  lossRate: 0.02,
  writeMs: 2,
  slowDiskFactor: 1,
  crashEveryMs: 1_500,
  downMsMax: 100,
  partitionEveryMs: 700,
  pauseEveryMs: 2_000,
  pauseMaxMs: 1_500,
  suspends: undefined,
  transferEveryMs: 1_500,
  registerClients: 1,
  leaseClients: 0,
  watchClients: 0,
  bulkKeys: 0,
  compactEveryMs: Infinity,
  turnMs: 0,
  turnsAtOnce: Infinity,
  rights: undefined,
  forms: undefined,
  membershipEveryMs: undefined,
  introduced: undefined,
  restores: undefined,
  corruptCheckMs: undefined,
  stableFromMs: 40_000,
  endMs: 41_000,
};

/** The only faults are those of the network, and clocks are true. */
const parting: Partial<CorePlan> = {
  ...changing,
  clockRateError: 0,
  crashEveryMs: Infinity,
  pauseEveryMs: Infinity,
  transferEveryMs: Infinity,
};

/** Servers end and restart all the time, and the partition is different each time. */
const restarting: Partial<CorePlan> = {
  ...parting,
  crashEveryMs: 300,
  downMsMax: 10,
  partitionEveryMs: 200,
  latencyMs: 3,
  writeMs: 1,
};

/** Mistakes by which a leader relies on its time although there may be another leader: thesis 6.4.1. */
export const timedMistakes: readonly Cored[] = [
  {
    name: "CT: a leader's time is counted from the answers",
    faults: {},
    raftFaults: { timeFromTheAnswer: true },
    breaks: "refresh",
    seed: 4,
    plan: { ...changing, latencyMs: 40 },
  },
  {
    name: "CT: a leader's time is counted by one answer",
    faults: {},
    raftFaults: { timeByTheFirst: true },
    breaks: "refresh",
    seed: 4,
    plan: { ...changing, servers: 5 },
  },
  {
    name: "CT: learners' answers count for a leader's time",
    faults: {},
    raftFaults: { timeByLearners: true },
    breaks: "refresh",
    seed: 17,
    plan: { ...changing, membershipEveryMs: 500 },
  },
  {
    name: "CT: a leader relies on its time after starting a transfer",
    faults: {},
    raftFaults: { timeAfterTheWord: true },
    breaks: "refresh",
    seed: 8,
    plan: changing,
  },
  {
    name: "CT: a server obeys a transfer that its leader has cancelled",
    faults: {},
    raftFaults: { lateWordObeyed: true },
    breaks: "refresh",
    seed: 7,
    plan: changing,
  },
  {
    name: "CT: a leader relies on its time again, and does not report the end of the transfer",
    faults: {},
    raftFaults: { transferBeginsAsOver: true },
    breaks: "refresh",
    seed: 7,
    plan: changing,
  },
  {
    name: "CT: a leader assumes that the others hold to it for as long as it would itself",
    faults: {},
    raftFaults: { timeByItsOwnTimeout: true },
    breaks: "refresh",
    seed: 1,
    plan: { ...changing, unequal: true },
  },
  {
    name: "CT: a server forgets that it has promised longer than its present timeout",
    faults: {},
    raftFaults: { promiseNotKept: true },
    breaks: "refresh",
    seed: 1,
    plan: { ...restarting, unequal: true, partitionEveryMs: 400 },
  },
  {
    name: "CT: a restarted server votes at once",
    faults: {},
    raftFaults: { votesAfterRestart: true },
    breaks: "refresh",
    seed: 39,
    plan: restarting,
  },
  {
    name: "CT: a leader ignores clock rates",
    faults: {},
    raftFaults: { timeIgnoresRates: true },
    breaks: "refresh",
    seed: 30,
    plan: { ...changing, clockRateError: 0.45 },
  },
  {
    // This row plants no mistake: it shows what the assumption about clocks is for.
    name: "CT: clock rates are off by more than servers assume",
    faults: {},
    breaks: "refresh",
    seed: 30,
    plan: { ...changing, clockRateError: 0.45, clockRateTaken: 0 },
  },
  {
    name: "CT: a leader counts by a steady clock that stood still during a suspension",
    faults: {},
    raftFaults: { timeIgnoresSuspension: true },
    breaks: "refresh",
    seed: 2,
    plan: { ...changing, suspends: true },
  },
  {
    name: "CT: a server votes while it holds to a leader",
    faults: {},
    raftFaults: { votesWhileHeld: true },
    breaks: "refresh",
    seed: 53,
    plan: { ...parting, partitionEveryMs: 150, latencyMs: 60 },
  },
  {
    name: "CT: a server stands while it holds to a leader",
    faults: {},
    raftFaults: { standsByTicksAlone: true },
    breaks: "refresh",
    seed: 10,
    plan: { ...parting, partitionEveryMs: 250, latencyMs: 3 },
  },
];
