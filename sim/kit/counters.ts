/**
 * How often each thing happened in a run, or in many: a batch in which the interesting things did not happen proves nothing (V).
 * Each ground has names of its own beside these two.
 */
export interface Counters {
  runs: number;
  events: number;
}

/** Adds what happened in more runs. */
export function addCounters<Counts extends Counters>(total: Counts, more: Counts): void {
  for (const name of Object.keys(total) as (keyof Counts)[]) (total[name] as number) += more[name] as number;
}
