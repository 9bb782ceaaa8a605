/** What happened in a run, or in many: a batch in which the interesting things did not happen proves nothing. */
export class StorageCounters {
  runs = 0;
  events = 0;
  tenures = 0;
  renewals = 0;
  failedRenewals = 0;
  releases = 0;
  lateReleases = 0;
  sharedTenures = 0;
  reads = 0;
  writes = 0;
  guardedWrites = 0;
  guardRefusals = 0;
  leaderships = 0;
  decisions = 0;
  crashes = 0;
  pauses = 0;
  stalls = 0;
  lateWrites = 0;
  forgettings = 0;
  silentStores = 0;
  cancellations = 0;
  tornWrites = 0;
  errors = 0;

  add(other: StorageCounters): void {
    for (const name of Object.keys(this) as StorageCounterName[]) this[name] += other[name];
  }
}

export type StorageCounterName = Exclude<keyof StorageCounters, "add">;
