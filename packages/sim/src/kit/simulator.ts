import type { Counters } from "./counters.js";
import { addCounters } from "./counters.js";
import type { Violation } from "./violation.js";

/** The result of one run. */
export interface SimResult<
  Plan = unknown,
  Invariant extends string = string,
  Counts extends Counters = Counters,
> {
  readonly seed: number;
  readonly plan: Plan;
  /** The facts of the plan that explain a failure. */
  readonly where: string;
  readonly violation: Violation<Invariant> | undefined;
  /** The hash of every event of the run: two runs of one seed must agree. */
  readonly traceHash: string;
  readonly counters: Counts;
}

/** The run that `leasehold sim` requests. */
export interface RunWanted {
  readonly seed: number;
  /** One of the simulator's modes, if it has any. */
  readonly mode: string | undefined;
  /** Features to remove from the run, whatever its seed says. */
  readonly without: readonly string[];
  readonly story?: ((line: string) => void) | undefined;
}

/** One ground, as `leasehold sim` sees it. */
export interface Simulator {
  /** Clock modes. By default the seed determines the mode. */
  readonly modes: readonly string[];
  /** The removable features of a run. */
  readonly features: readonly string[];
  readonly tellsStories: boolean;
  run(wanted: RunWanted): SimResult | Promise<SimResult>;
  /** A violation is a lack of progress, and not of safety. */
  isLiveness(invariant: string): boolean;
  /** Whether runs of that mode, or of all, must have seen this event. */
  canHappen(counter: string, mode: string | undefined): boolean;
}

/** The result of many runs, which end with the first failure. */
export class Batch<Result extends SimResult> {
  readonly counters: Result["counters"];
  failed: Result | undefined;
  last: Result | undefined;

  /** @param counters all zero */
  constructor(counters: Result["counters"]) {
    this.counters = counters;
  }

  /** Whether another run follows. */
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
  /** Called before each run. */
  readonly goOn: (runs: number) => boolean;
};

/** Runs seed after seed until one fails or the caller stops it. */
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
 * Shortens a failing run: removes one feature after another, as long as the same invariant still breaks in no
 * more events. A run ends at its violation, so its time is cut already.
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

/** One line with the failure and its place. */
export function failureText({ seed, where, violation }: SimResult): string {
  if (violation === undefined) return "no violation";
  const { invariant, text, atMs, event } = violation;
  return `${invariant}: ${text} (seed ${seed}, ${where}, at ${atMs.toFixed(1)} ms, event ${event})`;
}
