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
  /** Of connections with a bandwidth: cuts, proposals that were sent again, and such as had to wait. */
  cuts: 0,
  repeats: 0,
  backPressure: 0,
  /** That an operator has asked for, and those of them that were acknowledged. */
  memberChanges: 0,
  memberChangesDone: 0,
  removalsHeard: 0,
  /** Whole states that were read out of a server that went on; cores that began with such a one. */
  backups: 0,
  restores: 0,
  /** Cores that began with what one server had. */
  forcedCores: 0,
  /** Messages of servers of a former core that nobody listened to. */
  strangersRefused: 0,
  /** When nothing goes wrong any more, and a leader has had its time to be found. */
  lateElections: 0,
  elections: 0,
  snapshots: 0,
  compactions: 0,
  /** Of what servers have, and copies of others that were found to be the same. */
  comparisons: 0,
  sameCopies: 0,
  grants: 0,
  refreshes: 0,
  /** Turns of a leader that was certain by its clock that nobody else leads. */
  ledByClock: 0,
  leasesEnded: 0,
  watchEvents: 0,
  watchResumes: 0,
  watchProgress: 0,
  /** Changes of users and rights that were asked for; what a user was given, and what it was refused. */
  rightsChanges: 0,
  /** Asked right after a server had begun. */
  rightsAtStart: 0,
  rightsUses: 0,
  rightsRefusals: 0,
  /** Ranges of many keys. */
  ranges: 0,
  /** Turns after which there was more to do. */
  turnsLeft: 0,
  /** Of processes with leases: what they had, and what happened to them. */
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
