import { type Faults, duringFaults } from "./switches.js";
import { MemoryCluster } from "../../packages/leasehold/src/testing/memory-cluster.js";
import type { FilesInvariant, FilesPlan } from "../../packages/sim/src/files/plan.js";
import { type NamesBatch, simulateNamesMany } from "../../packages/sim/src/files/names/run.js";
import { type FilesBatch, simulateFilesMany } from "../../packages/sim/src/files/run.js";

/** A mistake in replicated files, and a seed that shows it. */
export interface Filed {
  readonly name: string;
  readonly faults: Partial<Faults>;
  readonly breaks: FilesInvariant;
  readonly seed: number;
  readonly plan?: Partial<FilesPlan>;
}

export const filed: readonly Filed[] = [
  {
    name: "B: a reset from a minority",
    faults: { filesResetOfOne: true },
    breaks: "linearizability",
    seed: 3,
  },
  {
    name: "B: a read without a check of the lease",
    faults: { filesReadWithoutLease: true },
    breaks: "linearizability",
    seed: 57,
  },
  {
    name: "B: a copy counts although no other copy has its damaged block",
    faults: { filesDamagedCopyCounts: true },
    breaks: "progress",
    seed: 297,
    // Without lost disks: beside damage, they may destroy the last copy.
    plan: {
      nodes: 3,
      files: 1,
      units: 2,
      thinkMs: 20,
      ttlMs: 400,
      lossRate: 0.05,
      crashEveryMs: 400,
      pauseEveryMs: Infinity,
      partitionEveryMs: 500,
      isolateEveryMs: 300,
      rotEveryMs: 100,
      fullEveryMs: Infinity,
      wipeEveryMs: Infinity,
    },
  },
  {
    name: "B: a repair with another version",
    faults: { filesRepairOfAnyVersion: true },
    breaks: "linearizability",
    seed: 161,
  },
  {
    name: "B: an empty disk votes",
    faults: { filesEmptyDiskVotes: true },
    breaks: "linearizability",
    seed: 4,
    plan: {
      nodes: 3,
      files: 1,
      clients: 3,
      thinkMs: 60,
      ttlMs: 400,
      delayMsMax: 5,
      diskMsMax: 3,
      lossRate: 0,
      lateRate: 0,
      crashEveryMs: Infinity,
      pauseEveryMs: Infinity,
      partitionEveryMs: Infinity,
      isolateEveryMs: Infinity,
      leaseLossEveryMs: Infinity,
      rotEveryMs: Infinity,
      fullEveryMs: Infinity,
      wipeEveryMs: Infinity,
      wipeBehindEveryMs: 600,
    },
  },
  {
    name: "B: orders of a deposed primary are carried out",
    faults: { filesOldEpochsCount: true },
    breaks: "linearizability",
    seed: 313,
  },
  {
    name: "B: a primary acknowledges a write that only its own disk has",
    faults: { filesMinorityCounts: true },
    breaks: "linearizability",
    seed: 24,
  },
  {
    name: "B: copies left out by an earlier reset count",
    faults: { filesAllBasesCount: true },
    breaks: "linearizability",
    seed: 128,
  },
  {
    name: "B: a primary goes on after an uncertain change",
    faults: { filesUncertainGoesOn: true },
    breaks: "linearizability",
    seed: 17,
  },
];

/** Mistakes in names and contents. */
export const named: readonly Filed[] = [
  {
    name: "N: a condition is not checked at the change",
    faults: { namesUnconditional: true },
    breaks: "linearizability",
    seed: 6,
  },
  {
    name: "N: names are answered without a check of the lease",
    faults: { filesReadWithoutLease: true },
    breaks: "linearizability",
    seed: 48,
  },
  {
    name: "N: a file is moved while it is written",
    faults: { namesUnsealed: true },
    breaks: "linearizability",
    seed: 130,
  },
  {
    name: "N: a change of names is visible before a majority has it",
    faults: { namesBeforeMajority: true },
    breaks: "linearizability",
    seed: 43,
  },
  {
    name: "N: a node collects contents that are placed on it",
    faults: { placedContentsCollected: true },
    breaks: "progress",
    seed: 1,
  },
  {
    name: "N: a move is not checked against a quota",
    faults: { quotaOfMoves: true },
    breaks: "linearizability",
    seed: 12,
  },
  {
    name: "N: a content is collected while an upload may name it",
    faults: { contentsCollectedEarly: true },
    breaks: "progress",
    seed: 2128,
  },
  ...["removalUntold", "changesForgotten", "changesNotInSnapshot"].map((fault): Filed => ({
    name: `N: followers, ${fault}`,
    faults: { [fault]: true },
    breaks: "changes",
    seed: 1,
    plan: { followers: 2, recordsMin: 10 },
  })),
  {
    // Only a follower at a primary that is cut off sees it.
    name: "N: followers, changesEarly",
    faults: { changesEarly: true },
    breaks: "changes",
    seed: 8,
    plan: {
      followers: 6,
      recordsMin: 10,
      isolateEveryMs: 250,
      partitionEveryMs: 400,
      leaseLossEveryMs: 1_000,
      nodesEveryMs: Infinity,
      crashEveryMs: Infinity,
      rotEveryMs: Infinity,
      fullEveryMs: Infinity,
      wipeEveryMs: Infinity,
    },
  },
];

/** If a change has made a seed useless, the search goes on for this many runs. */
const runsMax = 600;

export function searchFiles({ faults, breaks, seed, plan }: Filed): Promise<FilesBatch> {
  return duringFaults(faults, () =>
    simulateFilesMany({
      firstSeed: seed,
      only: [breaks],
      plan: { wipeBehindEveryMs: Infinity, ...plan },
      makeCluster: (options) => new MemoryCluster(options),
      goOn: (runs) => runs < runsMax,
    }),
  );
}

/** Runs without followers make the same random draws as before followers existed. */
const withoutFollowers: Partial<FilesPlan> = { followers: 0, recordsMin: 2_000, keptChanges: 10_000 };

export function searchNames({ faults, breaks, seed, plan }: Filed): Promise<NamesBatch> {
  return duringFaults(faults, () =>
    simulateNamesMany({
      firstSeed: seed,
      only: [breaks],
      plan: { ...withoutFollowers, ...plan },
      makeCluster: (options) => new MemoryCluster(options),
      goOn: (runs) => runs < runsMax,
    }),
  );
}
