import type { Counters } from "./counters.js";
import { addCounters } from "./counters.js";
import type { Violation } from "./violation.js";

/** What came of one run. */
export interface SimResult<
  Plan = unknown,
  Invariant extends string = string,
  Counts extends Counters = Counters,
> {
  readonly seed: number;
  readonly plan: Plan;
  /** What somebody who reads of a failure wants to know of the plan. */
  readonly where: string;
  readonly violation: Violation<Invariant> | undefined;
  /** Of every event of the run: two runs of one seed must agree. */
  readonly traceHash: string;
  readonly counters: Counts;
}

/** Which run `leasehold sim` wants. */
export interface RunWanted {
  readonly seed: number;
  /** One of the simulator's, if it has any. */
  readonly mode: string | undefined;
  /** Features that the run does not have, whatever its seed says. */
  readonly without: readonly string[];
  readonly story?: ((line: string) => void) | undefined;
}

/** One ground, as `leasehold sim` sees it. */
export interface Simulator {
  /** Clock modes. A seed runs in the one that it falls to, if nobody says another. */
  readonly modes: readonly string[];
  /** What can be taken out of a run. */
  readonly features: readonly string[];
  readonly tellsStories: boolean;
  run(wanted: RunWanted): SimResult | Promise<SimResult>;
  /** A violation is a lack of progress, and not of safety. */
  isLiveness(invariant: string): boolean;
  /** Whether runs of that mode, or of all, should see such a thing now and then. */
  canHappen(counter: string, mode: string | undefined): boolean;
}

/** What came of many runs: they end with the first that fails. */
export class Batch<Result extends SimResult> {
  readonly counters: Result["counters"];
  failed: Result | undefined;
  last: Result | undefined;

  /** @param counters all zero */
  constructor(counters: Result["counters"]) {
    this.counters = counters;
  }

  /** Whether another run is to follow. */
  goesOn(goOn: (runs: number) => boolean): boolean {
    return this.failed === undefined && goOn(this.counters.runs);
  }

  add(result: Result): void {
    addCounters(this.counters, result.counters);
    this.last = result;
    if (result.violation !== undefined) this.failed = result;
  }
}

/** Runs of seed after seed. */
export type BatchOptions<Options> = Omit<Options, "seed" | "story"> & {
  readonly firstSeed: number;
  /** Asked before each run. */
  readonly goOn: (runs: number) => boolean;
};

/** Runs seed after seed until one fails or it is told to stop. */
export async function simulateSeeds<Options, Result extends SimResult>(
  simulate: (options: Options) => Result | Promise<Result>,
  counters: Result["counters"],
  { firstSeed, goOn, ...rest }: BatchOptions<Options>,
): Promise<Batch<Result>> {
  const batch = new Batch<Result>(counters);
  while (batch.goesOn(goOn))
    batch.add(await simulate({ ...rest, seed: firstSeed + batch.counters.runs } as Options));
  return batch;
}

/**
 * Makes a failing run shorter: takes out one feature after another, and keeps out those without which the same
 * invariant still breaks, in no more events. A run ends at its violation, so its time is cut already.
 */
export async function shorten<
  Options extends { readonly without?: readonly string[] | undefined },
  Result extends SimResult,
>(
  simulate: (options: Options) => Result | Promise<Result>,
  features: readonly string[],
  options: Options,
  failed: Result,
): Promise<{ readonly options: Options; readonly result: Result }> {
  let best = { options, result: failed };
  for (const feature of features) {
    const { without = [] } = best.options;
    if (without.includes(feature)) continue;
    const tried = { ...best.options, without: [...without, feature] };
    const result = await simulate(tried);
    const same = result.violation?.invariant === failed.violation?.invariant;
    if (same && result.counters.events <= best.result.counters.events) best = { options: tried, result };
  }
  return best;
}

/** One line that says what failed, and where. */
export function failureText({ seed, where, violation }: SimResult): string {
  if (violation === undefined) return "no violation";
  const { invariant, text, atMs, event } = violation;
  return `${invariant}: ${text} (seed ${seed}, ${where}, at ${atMs.toFixed(1)} ms, event ${event})`;
}
