/** Counters of a run of a core. */
export const coreCounters = () => ({
  runs: 0,
  events: 0,
  operations: 0,
  unknownOutcomes: 0,
  crashes: 0,
  pauses: 0,
  partitions: 0,
  transfers: 0,
  /**
   * For connections with limited bandwidth: breaks, proposals that were resent, and proposals that had to
   * wait.
   */
  cuts: 0,
  repeats: 0,
  backPressure: 0,
  /** Membership changes that an operator requested, and how many were acknowledged. */
  memberChanges: 0,
  memberChangesDone: 0,
  removalsHeard: 0,
  /** Backups of running servers, and cores that began with one. */
  backups: 0,
  restores: 0,
  /** Cores that began with the disk of one server. */
  forcedCores: 0,
  /** Rejected messages of servers of a former core. */
  strangersRefused: 0,
  /** Elections after the last fault, once a leader has had time to be elected. */
  lateElections: 0,
  elections: 0,
  snapshots: 0,
  compactions: 0,
  /** Comparisons of servers' state, and copies found to be equal. */
  comparisons: 0,
  sameCopies: 0,
  grants: 0,
  refreshes: 0,
  /** Turns in which a leader relied on its clock. */
  ledByClock: 0,
  leasesEnded: 0,
  watchEvents: 0,
  watchResumes: 0,
  watchProgress: 0,
  /** For several watches on one stream: events, fragments, progress notifications and cancellations. */
  streamEvents: 0,
  watchFragments: 0,
  watchNotices: 0,
  watchesCancelled: 0,
  /** Requested changes of users and rights; granted and refused uses. */
  rightsChanges: 0,
  /** Uses right after the start of a server. */
  rightsAtStart: 0,
  rightsUses: 0,
  rightsRefusals: 0,
  /** Ranges of many keys. */
  ranges: 0,
  /** Turns after which there was more to do. */
  turnsLeft: 0,
  /** For processes with leases: their holds and their faults. */
  exclusiveTenures: 0,
  readerTenures: 0,
  writerTenures: 0,
  countedTenures: 0,
  fairTenures: 0,
  severalTenures: 0,
  leasesLost: 0,
  aborts: 0,
  holderCrashes: 0,
  holderPauses: 0,
  holderCuts: 0,
  clockSteps: 0,
  departures: 0,
  /** Histories that were too hard to check. */
  undecided: 0,
});

export type CoreCounters = ReturnType<typeof coreCounters>;
