/**
 * How often each thing happened in a run, or in many: a batch in which the interesting things did not happen proves nothing (V).
 * Each ground has names of its own beside these two.
 */
export type Counters = Record<string, number> & { runs: number; events: number };

/** Adds what happened in more runs. */
export function addCounters(total: Counters, more: Counters): void {
  for (const [name, count] of Object.entries(more)) total[name] = (total[name] ?? 0) + count;
}
