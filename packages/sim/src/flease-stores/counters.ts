/** Counters of a run of Flease on stores. */
export const gridCounters = () => ({
  runs: 0,
  events: 0,
  tenures: 0,
  renewals: 0,
  releases: 0,
  refusals: 0,
  takeovers: 0,
  crashes: 0,
  pauses: 0,
  forgets: 0,
  clockFaults: 0,
  ghosts: 0,
  conflicts: 0,
  errors: 0,
});

export type GridCounters = ReturnType<typeof gridCounters>;
