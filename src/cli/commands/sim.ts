import { type ClockAssumptions, type ClockMode, assumptionsOf, clockModes } from "../../../sim/kit/clocks.js";
import { addCounters } from "../../../sim/kit/counters.js";
import { type CounterName, type FleaseCounters, fleaseCounters } from "../../../sim/flease/counters.js";
import { type Feature, features, isFeature } from "../../../sim/flease/features.js";
import { type SimOptions, type SimResult, failureText, simulate } from "../../../sim/flease/run.js";
import { shorten } from "../../../sim/flease/shorten.js";
import { exitCode } from "../common/exit-codes.js";
import { usageError } from "../common/failure.js";
import { type Presentation, present } from "../output/present.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { packageVersion } from "../common/version.js";
import { Batch, countLines, simulatorFailed, wordsOf } from "./sim-batch.js";

/** The options of `leasehold sim` as commander hands them over. */
export interface SimCommandOptions extends SharedOptions {
  readonly seed?: string;
  readonly minutes?: number;
  readonly runs?: number;
  readonly mode?: ClockMode;
  readonly without?: string;
  readonly story?: true;
  readonly ground?: "delta" | "flease" | "grid";
}

/** From so many runs on, whatever matters must have happened often enough: otherwise they prove nothing (V). */
export const runsThatShowAll = 150;

/** What happens less than once in so many runs has hardly happened. The rarest things happen once in ten. */
export const runsForOnce = 50;

interface Summary {
  readonly version: string;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly eventsPerSecond: number;
  readonly counters: FleaseCounters;
  /** Of the only run. */
  readonly traceHash?: string;
  readonly hardlyHappened: readonly CounterName[];
  readonly story?: readonly string[];
  readonly violation?: {
    readonly invariant: string;
    readonly text: string;
    readonly replay: string;
    /** The same failure with less around it. */
    readonly shortened: string;
    readonly shortenedEvents: number;
  };
}

/**
 * `leasehold sim`: random runs of the protocol as it is in the product, on virtual time. Exit codes tell a violation
 * from a lack of progress; whatever else goes wrong is a fault of the simulator.
 */
export async function sim(options: SimCommandOptions): Promise<number> {
  const { output } = settingsOf(options);
  const batch = new Batch(options);
  const { firstSeed, isOne, story, told } = batch;
  const without = parseFeatures(options.without);
  const counters = fleaseCounters();
  let last: { readonly options: SimOptions; readonly result: SimResult } | undefined;
  while (last?.result.violation === undefined && batch.goOn(counters)) {
    const seed = firstSeed + counters.runs;
    const one = { seed, mode: options.mode ?? modeOf(seed), without, ...(story && { story }) };
    try {
      last = { options: one, result: await simulate(one) };
    } catch (error) {
      throw simulatorFailed(error, replayOf(one));
    }
    addCounters(counters, last.result.counters);
  }
  const { seconds } = batch;
  const showsAll = counters.runs < runsThatShowAll || without.length > 0;
  const summary: Summary = {
    version: packageVersion(),
    firstSeed,
    runs: counters.runs,
    events: counters.events,
    seconds: Number(seconds.toFixed(3)),
    eventsPerSecond: Math.round(counters.events / seconds),
    counters,
    ...(isOne && last !== undefined && { traceHash: last.result.traceHash }),
    hardlyHappened: showsAll ? [] : hardlyHappened(counters, options.mode),
    ...(told && { story: told }),
    ...(last?.result.violation !== undefined && { violation: await violationOf(last.options, last.result) }),
  };
  present(output, presentSummary(summary));
  return exitCodeOf(summary);
}

function exitCodeOf({ violation, hardlyHappened: hardly }: Summary): number {
  if (violation !== undefined) return exitCode(violation.invariant.startsWith("L") ? "stuck" : "violation");
  return exitCode(hardly.length > 0 ? "stuck" : "ok");
}

/** In which clock mode a seed runs when nobody says: so that one number is enough to run it again. */
function modeOf(seed: number): ClockMode {
  return clockModes[seed % clockModes.length]!;
}

function parseFeatures(text: string | undefined): readonly Feature[] {
  if (text === undefined) return [];
  return text.split(",").map((name) => {
    if (isFeature(name)) return name;
    throw usageError(`--without: no feature is called "${name}"; there are ${features.join(", ")}`);
  });
}

function hardlyHappened(counters: FleaseCounters, mode: ClockMode | undefined): CounterName[] {
  const names = Object.keys(counters) as CounterName[];
  return names.filter((name) => counters[name] * runsForOnce < counters.runs && canHappen(name, mode));
}

/** What does not happen in every clock mode, and where it does. */
const onlyWhere: Partial<Record<CounterName, (clocks: ClockAssumptions) => boolean>> = {
  // Clocks that can be relied on never show anything impossible.
  impossibleClocks: ({ wall, stepsTogether }) => !wall || stepsTogether,
  // A steady clock that stands still breaks A-rate.
  suspensions: ({ suspends }) => suspends,
  slews: ({ rate, suspends }) => rate && !suspends,
};

/** Nobody here wants more names than members keep: only tests have such a client. */
const neverHere: ReadonlySet<CounterName> = new Set(["fullRefusals"]);

function canHappen(name: CounterName, mode: ClockMode | undefined): boolean {
  if (neverHere.has(name)) return false;
  return mode === undefined || (onlyWhere[name]?.(assumptionsOf[mode]) ?? true);
}

async function violationOf(
  options: SimOptions,
  failed: SimResult,
): Promise<NonNullable<Summary["violation"]>> {
  const { story: _told, ...silent } = options;
  const shorter = await shorten(silent, failed);
  return {
    invariant: failed.violation!.invariant,
    text: failureText(failed),
    replay: replayOf(options),
    shortened: replayOf(shorter.options),
    shortenedEvents: shorter.result.counters.events,
  };
}

function replayOf({ seed, mode, without = [] }: SimOptions): string {
  const left = without.length === 0 ? "" : ` --without ${without.join(",")}`;
  return `leasehold sim --seed ${seed}@${packageVersion()} --mode ${mode}${left} --story`;
}

function presentSummary(summary: Summary): Presentation {
  return {
    document: summary,
    objects: [summary],
    table: (paint, widthMax) => {
      const { runs, events, seconds, eventsPerSecond, counters, traceHash, violation, firstSeed } = summary;
      const hardly = summary.hardlyHappened.map(wordsOf).join(", ");
      const lines = [
        `${runs} runs from seed ${firstSeed}, ${events} events in ${seconds.toFixed(1)} s: ${eventsPerSecond} events a second`,
        ...countLines(withMeans(counters), widthMax),
      ];
      if (traceHash !== undefined) lines.push(`trace ${traceHash}`);
      if (summary.hardlyHappened.length > 0)
        lines.push(paint("red", `the runs prove nothing: there was hardly any of ${hardly}`));
      if (violation === undefined) return lines;
      return [
        ...lines,
        paint("red", `VIOLATION of ${violation.text}`),
        `the same run, as a story:   ${violation.replay}`,
        `with less around it:        ${violation.shortened}`,
      ];
    },
  };
}

/** People want to know how long a hand-over takes, and not how long all of them took together. */
function withMeans(counters: FleaseCounters): FleaseCounters {
  return { ...counters, handOverMs: counters.handOverMs / Math.max(1, counters.handOvers) };
}
