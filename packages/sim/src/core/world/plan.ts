import type { RaftLimits } from "@leasehold/core/inner/raft/api.js";
import type { ReplicaLimits } from "@leasehold/core/inner/replica/options.js";
import { clockRateErrorDefault } from "leasehold/inner/common/clock-rates.js";
import type { SimRandom } from "../../kit/random.js";

/** The forms in which programs take leases of the core, through production's lease layer and provider. */
export const coreForms = ["exclusive", "shared", "counted", "fair", "several"] as const;
export type CoreForm = (typeof coreForms)[number];

/**
 * The plan of a run. Times are true times in ms unless stated otherwise. A mean of `Infinity` means never.
 */
export interface CorePlan {
  readonly seed: number;
  readonly servers: number;
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly clusterTimeMs: number;
  readonly limits: Partial<ReplicaLimits>;
  readonly raftLimits: Partial<RaftLimits>;
  /** Mean one-way latency. */
  readonly latencyMs: number;
  readonly lossRate: number;
  /**
   * The bandwidth of servers' TCP connections. Without it each message travels independently, and may be late
   * or lost.
   */
  readonly bytesPerMs?: number | undefined;
  /** The size of a socket's buffer. */
  readonly socketBytes?: number | undefined;
  /** The mean time between two breaks of a connection, which is redialled at once. */
  readonly cutEveryMs?: number | undefined;
  /** Whether a process's timers run before its messages after a pause. */
  readonly timersFirst?: boolean | undefined;
  /** No fault lasts long, so every request gets an answer. */
  readonly allAnswered?: boolean | undefined;
  /** The share of duplicated messages of the log. */
  readonly duplicateRate: number;
  /** The mean duration of a write to disk. */
  readonly writeMs: number;
  /** The same after the last fault; default: unchanged. */
  readonly calmWriteMs?: number | undefined;
  /** The slowdown of one of the disks. */
  readonly slowDiskFactor: number;
  /** The largest rate error of steady clocks. */
  readonly clockRateError: number;
  /** The rate error that servers assume; default: the true bound. */
  readonly clockRateTaken?: number | undefined;
  /** The part of an election timeout during which servers stay with a leader. Default: as in production. */
  readonly holdShare?: number | undefined;
  /** Whether servers have different election timeouts, which also change with each restart. */
  readonly unequal?: boolean | undefined;
  /** Whether pauses suspend the machine, including its steady clock. */
  readonly suspends?: boolean | undefined;
  readonly crashEveryMs: number;
  readonly downMsMax: number;
  readonly partitionEveryMs: number;
  readonly pauseEveryMs: number;
  readonly pauseMaxMs: number;
  readonly transferEveryMs: number;
  readonly registerClients: number;
  readonly keys: number;
  readonly leaseClients: number;
  readonly watchClients: number;
  /**
   * The number of clients with several watches on one stream, with options. A writer of large revisions runs
   * next to them.
   */
  readonly streamClients?: number | undefined;
  /**
   * The number of keys of the client that reads, writes and deletes many at a time. 0: there is no such
   * client.
   */
  readonly bulkKeys: number;
  /**
   * The mean delay between an event and the server's turn. Events that arrive meanwhile join the same turn.
   * 0: no delay.
   */
  readonly turnMs: number;
  /** The most effects that a server carries out in one turn. The rest waits for another turn. */
  readonly turnsAtOnce: number;
  /** Timeout of a client's request. */
  readonly timeoutMs: number;
  /** The mean pause of clients between two operations. */
  readonly thinkMs: number;
  readonly compactEveryMs: number;
  /** Revisions that the leader's compaction keeps. */
  readonly keepRevisions?: number | undefined;
  /** The age that the leader's compaction keeps. */
  readonly keepMs?: number | undefined;
  readonly quotaBytes?: number | undefined;
  /** The pause between comparisons of the servers' keys. */
  readonly corruptCheckMs?: number | undefined;
  /** The mean time between membership changes by an operator; never if absent. */
  readonly membershipEveryMs?: number | undefined;
  /** Servers identify themselves as in production: each accepts messages only from servers it knows. */
  readonly introduced?: boolean | undefined;
  /** Whether servers run either the former version or this one in each life, until all run this one. */
  readonly upgrades?: boolean | undefined;
  /**
   * The largest number of losses of the whole core, which is restored from a backup or from one server's
   * disk.
   */
  readonly restores?: number | undefined;
  /** The mean time between backups. */
  readonly backupEveryMs?: number | undefined;
  /** The number of leases that are granted at once and end together. Watches request progress. */
  readonly massLeases?: number | undefined;
  /** Whether users and rights change continuously, and every client has a user. */
  readonly rights?: boolean | undefined;
  /** The forms of leases taken by programs in additional processes. */
  readonly forms?: readonly CoreForm[] | undefined;
  /**
   * The mean time between steps of these programs' system clocks; half of the steps are small. Default:
   * drawn, and large.
   */
  readonly holderStepEveryMs?: number | undefined;
  /** The time of the last fault. */
  readonly stableFromMs: number;
  readonly endMs: number;
}

/** Small, so that every bound is reached now and then. */
const smallLimits: Partial<ReplicaLimits> = {
  snapshotEntries: 60,
  snapshotPieceBytes: 256,
  keepEntries: 10,
  leasesPerBatch: 2,
  watchResponsesMax: 3,
  watchBatch: 4,
  roundsMax: 2,
};

/** One run in this many has a history that takes a server many turns to process. */
const bulkyEvery = 8;

/** In one run in this many, several inputs may share a turn. */
const batchedEvery = 4;

/** In one run in this many, servers are compared. Not drawn either. */
const comparingEvery = 16;
const corruptCheckMs = 3_000;

/** In one run in this many, users and rights change. Not drawn either. */
const rightsEvery = 10;

/** In one run in this many, the membership changes. Not drawn either. */
const changingEvery = 6;
const membershipMs = 2_000;

/** In every second of these runs, servers accept messages only from servers that they know. */
const introducedEvery = 2 * changingEvery;

/**
 * In one run of this many, machines are suspended; in as many others, servers follow a leader for a long
 * time. Not drawn at random.
 */
const suspendedEvery = 4;
const longHoldEvery = 2;

/** In one run in this many, each server has its own election timeout. Not drawn either. */
const unequalEvery = 8;

/** In one run in this many there are processes with leases. Not drawn either. */
const holdersEvery = 5;

/** In half of the runs with programs their system clocks are set this often. */
const frequentStepsMs = 2_000;

/** In one run in this many, streams have several watches with options. Not drawn either. */
const streamingEvery = 16;

/** The plan of such a run. */
export const streaming = {
  streamClients: 2,
  bulkKeys: 0,
  limits: { ...smallLimits, fragmentBytesMax: 400, progressNotifyMs: 1_500 },
} satisfies Partial<CorePlan>;

/** In one run in this many, messages use connections. Not drawn either. */
const connectedEvery = 24;

/** Connections that carry a client's message in about 50 ms, and are full after a few. */
export const connected = {
  bytesPerMs: 4,
  socketBytes: 150,
  registerClients: 12,
  cutEveryMs: 1_500,
  timersFirst: true,
  forms: undefined,
} satisfies Partial<CorePlan>;

/** Three servers with short pauses and slow, breaking connections: every request is still answered. */
export const patient = {
  ...connected,
  servers: 3,
  cutEveryMs: 800,
  pauseEveryMs: 2_000,
  pauseMaxMs: 1_500,
  timeoutMs: 7_000,
  allAnswered: true,
  latencyMs: 2,
  writeMs: 2,
  slowDiskFactor: 1,
  thinkMs: 50,
  leaseClients: 0,
  watchClients: 0,
  bulkKeys: 0,
  turnMs: 0,
  limits: {},
  raftLimits: {},
  crashEveryMs: Infinity,
  partitionEveryMs: Infinity,
  transferEveryMs: Infinity,
  membershipEveryMs: undefined,
  introduced: undefined,
  rights: undefined,
  corruptCheckMs: undefined,
  keepRevisions: undefined,
  restores: undefined,
  suspends: undefined,
  holdShare: undefined,
  unequal: undefined,
  massLeases: undefined,
  stableFromMs: 15_000,
  endMs: 40_000,
} satisfies Partial<CorePlan>;

/**
 * In one run in this many, the core is restored. These runs have no programs with leases, because leases
 * granted since the backup are lost.
 */
const restoredEvery = 11;
const restoresMost = 2;

const bulkyLimits: Partial<ReplicaLimits> = { snapshotEntries: 400, unitsPerTurn: 64, watchBatch: 64 };

/** The plan of such a run. */
export const bulky = { watchClients: 4, bulkKeys: 1_500, turnMs: 0.5, turnsAtOnce: 1, limits: bulkyLimits };

/** In one run in this many, leases end together, by commands that take several turns. Not drawn either. */
const endingEvery = 24;

/** The plan of such a run. */
export const ending = {
  massLeases: 60,
  watchClients: 2,
  registerClients: 2,
  leaseClients: 2,
  bulkKeys: 0,
  turnMs: 0.5,
  turnsAtOnce: 1,
  limits: { snapshotEntries: 60, keepEntries: 10, unitsPerTurn: 32, watchBatch: 64 },
} satisfies Partial<CorePlan>;

const smallRaftLimits: Partial<RaftLimits> = {
  committedEntriesMax: 3,
  appendBytesMax: 300,
  inflightMessagesMax: 4,
};

export function drawCorePlan(seed: number, random: SimRandom): CorePlan {
  const often = (meanMs: number) => (random.chance(0.25) ? Infinity : meanMs * random.between(0.5, 2));
  const stableFromMs = random.between(15_000, 40_000);
  // Expensive. Not drawn at random, so other runs stay the same.
  const isBulky = seed % bulkyEvery === 0;
  return {
    seed,
    servers: random.pick([1, 3, 3, 3, 5]),
    tickMs: 100,
    electionTicks: 10,
    clusterTimeMs: random.pick([0, 1_500]),
    limits: { ...(random.chance(0.7) ? smallLimits : {}), ...(isBulky ? bulkyLimits : {}) },
    raftLimits: random.chance(0.5) ? smallRaftLimits : {},
    latencyMs: random.magnitude(0.5, 60),
    lossRate: random.pick([0, 0, 0.02, 0.1]),
    duplicateRate: random.pick([0, 0.05]),
    writeMs: random.magnitude(0.5, 60),
    slowDiskFactor: random.pick([1, 1, 10]),
    clockRateError: random.pick([0, 0.001, clockRateErrorDefault]),
    crashEveryMs: often(8_000),
    downMsMax: random.pick([100, 4_000]),
    partitionEveryMs: often(8_000),
    pauseEveryMs: often(12_000),
    pauseMaxMs: random.between(500, 15_000),
    transferEveryMs: often(15_000),
    registerClients: 4,
    keys: 3,
    leaseClients: 4,
    watchClients: isBulky ? bulky.watchClients : 2,
    bulkKeys: isBulky ? bulky.bulkKeys : 0,
    turnMs: isBulky || seed % batchedEvery === 1 ? bulky.turnMs : 0,
    turnsAtOnce: isBulky ? bulky.turnsAtOnce : Infinity,
    timeoutMs: random.pick([1_000, 5_000]),
    thinkMs: random.magnitude(20, 600),
    compactEveryMs: often(10_000),
    // Not drawn, so that the seeds that show a mistake stay the same.
    keepRevisions: seed % 3 === 0 ? 40 : undefined,
    rights: seed % rightsEvery === 7 ? true : undefined,
    corruptCheckMs: seed % comparingEvery === 9 ? corruptCheckMs : undefined,
    membershipEveryMs: seed % changingEvery === changingEvery - 1 ? membershipMs : undefined,
    suspends: seed % suspendedEvery === 2 ? true : undefined,
    holdShare: seed % longHoldEvery === 1 ? 1 : undefined,
    unequal: seed % unequalEvery === 3 ? true : undefined,
    forms: seed % holdersEvery === 0 ? coreForms : undefined,
    holderStepEveryMs: seed % (2 * holdersEvery) === 0 ? frequentStepsMs : undefined,
    introduced: seed % introducedEvery === introducedEvery - 1 ? true : undefined,
    restores: seed % restoredEvery === 9 && seed % holdersEvery !== 0 ? restoresMost : undefined,
    stableFromMs,
    endMs: stableFromMs + 40_000,
    ...(seed % streamingEvery === streamingEvery - 3 ? streaming : {}),
    ...(seed % endingEvery === endingEvery - 3 ? ending : {}),
    ...(seed % connectedEvery === connectedEvery - 5 ? connected : {}),
  };
}
