/** Counters of a run on shared storage. */
export const storageCounters = () => ({
  runs: 0,
  events: 0,
  tenures: 0,
  renewals: 0,
  failedRenewals: 0,
  releases: 0,
  lateReleases: 0,
  sharedTenures: 0,
  countedTenures: 0,
  reads: 0,
  writes: 0,
  guardedWrites: 0,
  guardRefusals: 0,
  leaderships: 0,
  decisions: 0,
  crashes: 0,
  departures: 0,
  pauses: 0,
  stalls: 0,
  clockSteps: 0,
  suspensions: 0,
  lateWrites: 0,
  forgettings: 0,
  replacements: 0,
  silentStores: 0,
  cancellations: 0,
  tornWrites: 0,
  /** Leases that were detached, those of them that were taken over, and breaks that are done. */
  detached: 0,
  adopted: 0,
  broken: 0,
  releaseRequests: 0,
  errors: 0,
});

export type StorageCounters = ReturnType<typeof storageCounters>;

export type StorageCounterName = keyof StorageCounters;
