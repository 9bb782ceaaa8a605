/**
 * Counters of a run, or of many: a batch without the interesting events proves nothing. Each ground adds
 * names of its own to these two.
 */
export type Counters = Record<string, number> & { runs: number; events: number };

/** Adds the counters of more runs. */
export function addCounters(total: Counters, more: Counters): void {
  for (const [name, count] of Object.entries(more)) total[name] = (total[name] ?? 0) + count;
}
