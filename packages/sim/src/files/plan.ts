import { Features } from "../kit/features.js";
import { SimRandom } from "../kit/random.js";

/** The plan of a run. Times in ms. */
export interface FilesPlan {
  readonly seed: number;
  readonly nodes: number;
  /** Nodes that may be added, in runs of names. */
  readonly spares: number;
  readonly files: number;
  /** The length of files in units: if there are few, operations overlap. */
  readonly units: number;
  readonly clients: number;
  /** The average time between two operations of a client. */
  readonly thinkMs: number;
  readonly ttlMs: number;
  readonly idleMs: number;
  /** Time limit of one operation at a node. A short one leaves many outcomes unknown. */
  readonly operationMs: number;
  readonly delayMsMax: number;
  readonly diskMsMax: number;
  readonly lossRate: number;
  readonly duplicateRate: number;
  /** The share of very late messages, for example from buffers of a connection that breaks and returns. */
  readonly lateRate: number;
  readonly crashEveryMs: number;
  readonly pauseEveryMs: number;
  readonly partitionEveryMs: number;
  /** Isolates one node at a time, so that successive majorities have only one node in common. */
  readonly isolateEveryMs: number;
  /** The mean time between losses of a node's access to its leases. */
  readonly leaseLossEveryMs: number;
  readonly rotEveryMs: number;
  readonly fullEveryMs: number;
  readonly wipeEveryMs: number;
  /** The mean time between losses of a disk while other machines miss changes. */
  readonly wipeBehindEveryMs: number;
  /** The mean time between changes of the list of nodes, in runs of names. */
  readonly nodesEveryMs: number;
  /** Programs that follow the changes of names. */
  readonly followers: number;
  readonly keptChanges: number;
  /** The number of records of names before a snapshot. */
  readonly recordsMin: number;
  /** The time of the last fault. */
  readonly stableFromMs: number;
}

/** The random stream of faults that were added later: other draws of a run stay the same. */
const lateStream = 2 ** 48;

/** Draws a fault's frequency: often, now and then, or never. */
const often = (random: SimRandom, everyMs: number): number =>
  random.chance(0.3) ? Infinity : random.magnitude(everyMs / 3, everyMs * 2);

export function drawFilesPlan(seed: number, random: SimRandom): FilesPlan {
  // Corruption while another disk is lost may destroy the last copy.
  const wipes = random.chance(0.3);
  return {
    seed,
    nodes: random.chance(0.2) ? 5 : 3,
    spares: 0,
    files: 1 + random.below(2),
    units: random.pick([2, 4, 8]),
    clients: random.pick([3, 6]),
    thinkMs: random.magnitude(10, 150),
    ttlMs: random.pick([400, 1_000]),
    idleMs: random.pick([300, 60_000]),
    operationMs: random.pick([300, 1_000]),
    delayMsMax: random.magnitude(2, 40),
    diskMsMax: random.magnitude(1, 20),
    lossRate: random.chance(0.5) ? 0 : 0.05,
    duplicateRate: random.chance(0.5) ? 0 : 0.2,
    lateRate: random.chance(0.5) ? 0 : 0.15,
    crashEveryMs: often(random, 2_000),
    pauseEveryMs: often(random, 2_000),
    partitionEveryMs: often(random, 2_000),
    isolateEveryMs: often(random, 1_000),
    leaseLossEveryMs: often(random, 2_000),
    rotEveryMs: wipes ? Infinity : often(random, 800),
    fullEveryMs: random.chance(0.8) ? Infinity : 3_000,
    wipeEveryMs: wipes ? 2_500 : Infinity,
    wipeBehindEveryMs: wipes && new SimRandom(seed + lateStream).chance(0.5) ? 1_500 : Infinity,
    nodesEveryMs: Infinity,
    followers: 0,
    keptChanges: 10_000,
    recordsMin: 2_000,
    stableFromMs: 8_000,
  };
}

const less = (removed: Partial<FilesPlan>) => (plan: FilesPlan) => ({ ...plan, ...removed });

export const filesFeatures = new Features({
  crashes: less({ crashEveryMs: Infinity }),
  pauses: less({ pauseEveryMs: Infinity }),
  partitions: less({ partitionEveryMs: Infinity }),
  isolations: less({ isolateEveryMs: Infinity }),
  "lease-losses": less({ leaseLossEveryMs: Infinity }),
  rot: less({ rotEveryMs: Infinity }),
  "full-disks": less({ fullEveryMs: Infinity }),
  wipes: less({ wipeEveryMs: Infinity, wipeBehindEveryMs: Infinity }),
  followers: less({ followers: 0, recordsMin: 2_000 }),
  "node-changes": less({ spares: 0, nodesEveryMs: Infinity }),
  loss: less({ lossRate: 0 }),
  duplicates: less({ duplicateRate: 0 }),
  "late-messages": less({ lateRate: 0 }),
});

export const filesCounters = () => ({
  runs: 0,
  events: 0,
  reads: 0,
  writes: 0,
  uncertain: 0,
  settled: 0,
  refused: 0,
  resets: 0,
  crashes: 0,
  pauses: 0,
  partitions: 0,
  isolations: 0,
  late: 0,
  leaseLosses: 0,
  rotten: 0,
  repaired: 0,
  full: 0,
  wiped: 0,
  rebuilt: 0,
  added: 0,
  drained: 0,
  removed: 0,
  undecided: 0,
});

export type FilesCounters = ReturnType<typeof filesCounters>;

/**
 * - `linearizability`: of each file
 * - `agreement`: at the end all copies are the same
 * - `progress`: at the end everything is served
 * - `changes`: followers see each acknowledged change once, in the order in which they were made
 */
export type FilesInvariant = "linearizability" | "agreement" | "progress" | "changes";
