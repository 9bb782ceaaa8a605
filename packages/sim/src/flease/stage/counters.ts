/** Counters of a run among peers. */
export const fleaseCounters = () => ({
  runs: 0,
  events: 0,
  tenures: 0,
  fastWins: 0,
  fastLosses: 0,
  oneTripRenewals: 0,
  twoPhaseRenewals: 0,
  failedRenewals: 0,
  releases: 0,
  lapses: 0,
  cancellations: 0,
  takeoversAfterCrash: 0,
  takeoversAfterLapse: 0,
  /** Two-phase acquisitions of a released lease that has not expired. */
  takeoversOfReleased: 0,
  lateDecisions: 0,
  floorRefusals: 0,
  heldRefusals: 0,
  promiseRefusals: 0,
  staleRefusals: 0,
  boundRefusals: 0,
  /** Refusals of a client that wants more than members keep. */
  fullRefusals: 0,
  crashes: 0,
  rejoins: 0,
  pauses: 0,
  suspensions: 0,
  slews: 0,
  clockAlarms: 0,
  impossibleClocks: 0,
  /** Handovers from a release to the next tenure of the same resource. */
  handOvers: 0,
  handOverMs: 0,
  // Programs on the lease layer
  automaticRenewals: 0,
  waitsServedByHint: 0,
  /** Handovers from one caller to the next in one process. */
  localHandOvers: 0,
  electionsWon: 0,
  electionsLost: 0,
  breaks: 0,
  /** Handovers to a waiter. */
  namedHeirs: 0,
  requestsFollowed: 0,
  queriesAnswered: 0,
  changesSeen: 0,
  /** Counted and shared leases. */
  shares: 0,
  /** First entries of a joint view, and of views after one. */
  changesBegun: 0,
  changesEnded: 0,
  /** Members whose kept view was lost. */
  viewsLost: 0,
  viewRefusals: 0,
  clientArrivals: 0,
  clientDepartures: 0,
});

export type FleaseCounters = ReturnType<typeof fleaseCounters>;

export type CounterName = keyof FleaseCounters;
