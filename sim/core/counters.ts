/** What happened in a run, or in many: a batch in which the interesting things did not happen proves nothing. */
export class CoreCounters {
  runs = 0;
  events = 0;
  operations = 0;
  unknownOutcomes = 0;
  crashes = 0;
  pauses = 0;
  partitions = 0;
  transfers = 0;
  elections = 0;
  snapshots = 0;
  compactions = 0;
  grants = 0;
  refreshes = 0;
  leasesEnded = 0;
  watchEvents = 0;
  watchResumes = 0;
  /** Ranges of many keys. */
  ranges = 0;
  /** Turns after which there was more to do. */
  turnsLeft = 0;
  /** Histories that were too hard to decide. */
  undecided = 0;

  add(other: CoreCounters): void {
    for (const name of Object.keys(this) as Exclude<keyof CoreCounters, "add">[]) this[name] += other[name];
    this.runs += 1;
  }
}
