import type { CorePlan } from "../../packages/sim/src/core/world/plan.js";
import type { Cored } from "./cored.js";

/** The core is lost and restored, and clients do little else. */
const losing: Partial<CorePlan> = {
  restores: 3,
  servers: 3,
  registerClients: 2,
  leaseClients: 4,
  watchClients: 0,
  bulkKeys: 0,
  turnMs: 0,
  forms: undefined,
};

/** Mistakes in backups, and in cores that start from the state of another core. */
export const restoring: readonly Cored[] = [
  {
    name: "C: a restored core keeps the old core's ids",
    faults: { restoredUnderOldIds: true },
    breaks: "restored",
    seed: 1,
    plan: losing,
  },
  {
    name: "C: each restored server makes its own ids",
    faults: { restoredUnderIdsOfEach: true },
    breaks: "progress",
    seed: 1,
    plan: losing,
  },
  {
    name: "C: a restored core keeps the old core's members",
    faults: { restoredMembersStay: true },
    breaks: "restored",
    seed: 1,
    plan: losing,
  },
  {
    name: "C: a restored lease keeps only its remaining time",
    faults: { restoredTimeLeft: true },
    breaks: "restored",
    seed: 1,
    plan: { ...losing, clusterTimeMs: 1_500 },
  },
  {
    name: "C: the only server of a forced core waits for the votes of others",
    faults: { forcedVotersStay: true },
    breaks: "progress",
    seed: 2,
    plan: losing,
  },
  {
    name: "C: the only server of a forced core forgets the end of its log",
    faults: { forcedWithoutTail: true },
    breaks: "restored",
    seed: 2,
    plan: losing,
  },
  {
    name: "C: a backup is taken within a command",
    faults: { backupWithinCommand: true },
    breaks: "restored",
    seed: 5,
    plan: {
      ...losing,
      leaseClients: 40,
      backupEveryMs: 20,
      restores: 0,
      turnMs: 0.5,
      turnsAtOnce: 1,
      limits: { unitsPerTurn: 8, leasesPerBatch: 100 },
    },
  },
  {
    name: "C: a backup does not record the keys attached to leases",
    faults: { attachmentsLost: true },
    breaks: "restored",
    seed: 1,
    plan: losing,
  },
  {
    name: "C: a backup has no history",
    faults: { backupWithoutHistory: true },
    breaks: "restored",
    seed: 1,
    plan: losing,
  },
  {
    name: "C: a server hears the servers of a core that is gone",
    faults: { otherCoresHeard: true },
    breaks: "restored",
    seed: 1,
    plan: losing,
  },
];
