import type { RaftLimits } from "@leasehold/core/inner/raft/api.js";
import type { ReplicaLimits } from "@leasehold/core/inner/replica/options.js";
import { clockRateErrorDefault } from "leasehold/inner/common/clock-rates.js";
import type { SimRandom } from "../../kit/random.js";

/** Forms in which programs take leases of the core, by the waist and the provider of production. */
export const coreForms = ["exclusive", "shared", "counted", "fair", "several"] as const;
export type CoreForm = (typeof coreForms)[number];

/** What a run is like. Times are true ones, ms, unless said otherwise; a mean of `Infinity` is never. */
export interface CorePlan {
  readonly seed: number;
  readonly servers: number;
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly clusterTimeMs: number;
  readonly limits: Partial<ReplicaLimits>;
  readonly raftLimits: Partial<RaftLimits>;
  /** One way, mean. */
  readonly latencyMs: number;
  readonly lossRate: number;
  /**
   * Servers have connections as TCP makes them, which carry so much; else each message comes by itself, late
   * or never.
   */
  readonly bytesPerMs?: number | undefined;
  /** What a socket has room for. */
  readonly socketBytes?: number | undefined;
  /** A connection is cut, and made again at once; mean. */
  readonly cutEveryMs?: number | undefined;
  /** When a process goes on that stood still, its timers come before what has arrived. */
  readonly timersFirst?: boolean | undefined;
  /** Nothing fails for long: no outcome of a request stays unknown. */
  readonly allAnswered?: boolean | undefined;
  /** Of the log's own messages. */
  readonly duplicateRate: number;
  /** A write to disk, mean. */
  readonly writeMs: number;
  /** The same when nothing goes wrong any more; no other one if it is not given. */
  readonly calmWriteMs?: number | undefined;
  /** One of the disks is slower by this. */
  readonly slowDiskFactor: number;
  /** Steady clocks run faster or slower by up to this. */
  readonly clockRateError: number;
  /** What servers take that to be; the same if it is not given. */
  readonly clockRateTaken?: number | undefined;
  /** For how much of an election timeout servers hold to a leader; as in production if it is not given. */
  readonly holdShare?: number | undefined;
  /** Servers differ in their election timeouts, and each begins again with another one. */
  readonly unequal?: boolean | undefined;
  /** A server stands still because its machine is suspended: so does its steady clock. */
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
  /** Of a client that reads, writes and deletes so many at a time; 0: there is none. */
  readonly bulkKeys: number;
  /**
   * How long after an event a server has its turn, mean; 0: at once. What comes meanwhile has the same turn.
   */
  readonly turnMs: number;
  /** Effects that a server carries out in one turn; the rest follows in another one. */
  readonly turnsAtOnce: number;
  /** How long a client waits for an answer. */
  readonly timeoutMs: number;
  /** Of clients between two operations, mean. */
  readonly thinkMs: number;
  readonly compactEveryMs: number;
  /** The leader has all but so many revisions compacted. */
  readonly keepRevisions?: number | undefined;
  /** The leader has what is older compacted. */
  readonly keepMs?: number | undefined;
  readonly quotaBytes?: number | undefined;
  /** The leader has the servers' keys compared so often. */
  readonly corruptCheckMs?: number | undefined;
  /** An operator adds, promotes or removes a server, mean; never if it is not given. */
  readonly membershipEveryMs?: number | undefined;
  /** Servers call each other as in production: each takes what it hears from those it knows. */
  readonly introduced?: boolean | undefined;
  /** Servers of the former version and of this one: each life has one of the two, until all are of this one. */
  readonly upgrades?: boolean | undefined;
  /** The whole core is lost, and restored from a backup or from one server's disk, at most so often. */
  readonly restores?: number | undefined;
  /** Backups are taken, mean. */
  readonly backupEveryMs?: number | undefined;
  /** So many leases are taken at once and end together, and watches are asked how far they are. */
  readonly massLeases?: number | undefined;
  /** Users and rights change all the while, and every client has a user. */
  readonly rights?: boolean | undefined;
  /** Processes come, with programs that take leases in these forms. */
  readonly forms?: readonly CoreForm[] | undefined;
  /** From here on nothing more goes wrong. */
  readonly stableFromMs: number;
  readonly endMs: number;
}

/** Small enough that every bound is met now and then. */
const smallLimits: Partial<ReplicaLimits> = {
  snapshotEntries: 60,
  snapshotPieceBytes: 256,
  keepEntries: 10,
  leasesPerBatch: 2,
  watchResponsesMax: 3,
  watchBatch: 4,
  roundsMax: 2,
};

/** One run in so many has a history that takes a server many turns to go through. */
const bulkyEvery = 8;

/** In one run of so many several inputs may come to one turn. */
const batchedEvery = 4;

/** In one run of so many servers are compared. No draw, either. */
const comparingEvery = 16;
const corruptCheckMs = 3_000;

/** In one run of so many users and rights change. No draw, either. */
const rightsEvery = 10;

/** In one run of so many servers come and go. No draw, either. */
const changingEvery = 6;
const membershipMs = 2_000;

/** In every second of these each server hears those only whom it knows. */
const introducedEvery = 2 * changingEvery;

/** In one run of so many machines are suspended, and in so many servers hold to a leader for long. No draws. */
const suspendedEvery = 4;
const longHoldEvery = 2;

/** In one run of so many servers have election timeouts of their own. No draw, either. */
const unequalEvery = 8;

/** In one run of so many there are processes with leases. No draw, either. */
const holdersEvery = 5;

/** In one run of so many messages go by connections. No draw, either. */
const connectedEvery = 24;

/** Of connections that carry a message of a client in some 50 ms, and are full with a few. */
export const connected = {
  bytesPerMs: 4,
  socketBytes: 150,
  registerClients: 12,
  cutEveryMs: 1_500,
  timersFirst: true,
  forms: undefined,
} satisfies Partial<CorePlan>;

/**
 * Three servers with connections that are cut and slow, and that stand still for a moment: every request is
 * answered all the same.
 */
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

/** In one run of so many the core is restored. What programs took since the backup is lost: they stay away. */
const restoredEvery = 11;
const restoresMost = 2;

const bulkyLimits: Partial<ReplicaLimits> = { snapshotEntries: 400, unitsPerTurn: 64, watchBatch: 64 };

/** What such a run is like. */
export const bulky = { watchClients: 4, bulkKeys: 1_500, turnMs: 0.5, turnsAtOnce: 1, limits: bulkyLimits };

/** In one run of so many leases end together, by commands that take several turns. No draw, either. */
const endingEvery = 24;

/** What such a run is like. */
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
  // Costly, and no draw: the other runs stay as they are.
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
    // Not drawn: the seeds that show a mistake would all be others.
    keepRevisions: seed % 3 === 0 ? 40 : undefined,
    rights: seed % rightsEvery === 7 ? true : undefined,
    corruptCheckMs: seed % comparingEvery === 9 ? corruptCheckMs : undefined,
    membershipEveryMs: seed % changingEvery === changingEvery - 1 ? membershipMs : undefined,
    suspends: seed % suspendedEvery === 2 ? true : undefined,
    holdShare: seed % longHoldEvery === 1 ? 1 : undefined,
    unequal: seed % unequalEvery === 3 ? true : undefined,
    forms: seed % holdersEvery === 0 ? coreForms : undefined,
    introduced: seed % introducedEvery === introducedEvery - 1 ? true : undefined,
    restores: seed % restoredEvery === 9 && seed % holdersEvery !== 0 ? restoresMost : undefined,
    stableFromMs,
    endMs: stableFromMs + 40_000,
    ...(seed % endingEvery === endingEvery - 3 ? ending : {}),
    ...(seed % connectedEvery === connectedEvery - 5 ? connected : {}),
  };
}
