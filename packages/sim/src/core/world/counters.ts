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
   * Of connections with limited bandwidth: breaks, proposals that were sent again, and proposals that had to
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
  /** Cores that began with what one server had. */
  forcedCores: 0,
  /** Rejected messages of servers of a former core. */
  strangersRefused: 0,
  /** After the last fault, when a leader has had time to be elected. */
  lateElections: 0,
  elections: 0,
  snapshots: 0,
  compactions: 0,
  /** Comparisons of servers' state, and copies found equal. */
  comparisons: 0,
  sameCopies: 0,
  grants: 0,
  refreshes: 0,
  /** Turns of a leader that relied on its clock. */
  ledByClock: 0,
  leasesEnded: 0,
  watchEvents: 0,
  watchResumes: 0,
  watchProgress: 0,
  /** Of several watches on one stream: events, fragments, progress notifications, and cancellations. */
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
  /** Of processes with leases: their holds, and their faults. */
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
  /** Histories that were too hard to decide. */
  undecided: 0,
});

export type CoreCounters = ReturnType<typeof coreCounters>;
