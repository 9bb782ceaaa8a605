/** What is counted in a run of a consistent core. */
export const coreCounters = () => ({
  runs: 0,
  events: 0,
  operations: 0,
  unknownOutcomes: 0,
  crashes: 0,
  pauses: 0,
  partitions: 0,
  transfers: 0,
  elections: 0,
  snapshots: 0,
  compactions: 0,
  grants: 0,
  refreshes: 0,
  leasesEnded: 0,
  watchEvents: 0,
  watchResumes: 0,
  /** Ranges of many keys. */
  ranges: 0,
  /** Turns after which there was more to do. */
  turnsLeft: 0,
  /** Histories that were too hard to decide. */
  undecided: 0,
});

export type CoreCounters = ReturnType<typeof coreCounters>;
