import { runGrid } from "../../../sim/flease-stores/run.js";
import { isStorageFeature, type StorageFeature, storageFeatures } from "../../../sim/delta/features.js";
import { simulateStorage, storageFailureText } from "../../../sim/delta/run.js";
import { shortenStorage } from "../../../sim/delta/shorten.js";
import { livenessInvariants } from "../../../sim/delta/invariants.js";
import { exitCode } from "../common/exit-codes.js";
import { usageError } from "../common/failure.js";
import { type Presentation, present } from "../output/present.js";
import { settingsOf } from "../common/settings.js";
import { packageVersion } from "../common/version.js";
import { Batch, countLines, simulatorFailed } from "./sim-batch.js";
import { type SimCommandOptions, runsForOnce, runsThatShowAll } from "./sim.js";

/** What can be simulated on stores. */
export type StoredGround = "delta" | "grid";

type Counts = Readonly<Record<string, number>>;

interface Violated {
  readonly invariant: string;
  readonly text: string;
  readonly replay: string;
  /** The same failure with less around it, where that can be had. */
  readonly shortened?: string;
}

/** One run, on whichever ground. */
export interface Run {
  readonly events: number;
  readonly counts: Counts;
  readonly traceHash?: string;
  readonly violation?: Violated;
  /** The violation is a lack of progress. */
  readonly isStuck?: boolean;
}

interface Summary {
  readonly version: string;
  readonly ground: string;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly counters: Counts;
  /** Of the only run. */
  readonly traceHash?: string;
  readonly hardlyHappened: readonly string[];
  readonly story?: readonly string[];
  readonly violation?: Violated;
}

/** `leasehold sim --ground delta` and `--ground grid`: random runs on shared storage. The seed decides everything in one. */
export function simStorage(options: SimCommandOptions, ground: StoredGround): number {
  if (options.mode !== undefined)
    throw usageError(`--mode belongs to the simulated cluster, and not to --ground ${ground}`);
  if (ground === "grid" && (options.without !== undefined || options.story === true))
    throw usageError("--without and --story are not there for --ground grid");
  const without = parseFeatures(options.without);
  return simRuns(options, {
    ground,
    showsAll: without.length === 0,
    run: (seed, story) => (ground === "grid" ? onGrid(seed) : onDelta(seed, without, story)),
    replay: (seed) => replayOf(ground, seed, without),
  });
}

/** What is run, and how a run is had again. */
export interface Simulated {
  readonly ground: string;
  /** Nothing is left out: then everything should happen now and then. */
  readonly showsAll: boolean;
  readonly run: (seed: number, story: ((line: string) => void) | undefined) => Run;
  readonly replay: (seed: number) => string;
}

/** Runs seed after seed, and tells what came of it. */
export function simRuns(options: SimCommandOptions, { ground, showsAll, run, replay }: Simulated): number {
  const { output } = settingsOf(options);
  const batch = new Batch(options);
  const { firstSeed, isOne, story, told } = batch;
  const counters: Record<string, number> = {};
  let [runs, events] = [0, 0];
  let last: Run | undefined;
  for (; last?.violation === undefined && batch.goOn({ runs, events }); runs += 1) {
    const seed = firstSeed + runs;
    try {
      last = run(seed, story);
    } catch (error) {
      throw simulatorFailed(error, replay(seed));
    }
    events += last.events;
    for (const [name, count] of Object.entries(last.counts)) counters[name] = (counters[name] ?? 0) + count;
  }
  const summary: Summary = {
    version: packageVersion(),
    ground,
    firstSeed,
    runs,
    events,
    seconds: Number(batch.seconds.toFixed(3)),
    counters,
    ...(isOne && last?.traceHash !== undefined && { traceHash: last.traceHash }),
    hardlyHappened: showsAll && runs >= runsThatShowAll ? hardlyHappened(counters, runs) : [],
    ...(told && { story: told }),
    ...(last?.violation !== undefined && { violation: last.violation }),
  };
  present(output, presentSummary(summary));
  if (last?.violation !== undefined) return exitCode(last.isStuck === true ? "stuck" : "violation");
  return exitCode(summary.hardlyHappened.length > 0 ? "stuck" : "ok");
}

function hardlyHappened(counters: Counts, runs: number): string[] {
  return Object.keys(counters).filter((name) => counters[name]! * runsForOnce < runs);
}

function onDelta(
  seed: number,
  without: readonly StorageFeature[],
  story: ((line: string) => void) | undefined,
): Run {
  const result = simulateStorage({ seed, without, story });
  const { runs: _runs, events, ...counts } = { ...result.counters };
  const run = { events, counts: countsOf(counts), traceHash: result.traceHash };
  if (result.violation === undefined) return run;
  const { invariant } = result.violation;
  const shorter = shortenStorage({ seed, without }, result);
  const violation = {
    invariant,
    text: storageFailureText(result),
    replay: replayOf("delta", seed, without),
    shortened: replayOf("delta", seed, shorter.options.without ?? []),
  };
  return { ...run, violation, isStuck: livenessInvariants.has(invariant) };
}

function onGrid(seed: number): Run {
  const { counters, violation, traceHash } = runGrid(seed);
  const { runs: _runs, events, ...counts } = counters;
  const run = { events, counts, traceHash };
  if (violation === undefined) return run;
  const { invariant, text, atMs, event } = violation;
  const what = `${invariant}: ${text} (seed ${seed}, ${atMs.toFixed(1)} ms, event ${event})`;
  return { ...run, violation: { invariant, text: what, replay: replayOf("grid", seed, []) } };
}

/** Without the class's methods. */
export function countsOf(counters: object): Counts {
  return Object.fromEntries(Object.entries(counters) as [string, number][]);
}

function replayOf(ground: StoredGround, seed: number, without: readonly StorageFeature[]): string {
  const left = without.length === 0 ? "" : ` --without ${without.join(",")}`;
  const story = ground === "grid" ? "" : " --story";
  return `leasehold sim --ground ${ground} --seed ${seed}@${packageVersion()}${left}${story}`;
}

function parseFeatures(text: string | undefined): readonly StorageFeature[] {
  if (text === undefined) return [];
  return text.split(",").map((name) => {
    if (isStorageFeature(name)) return name;
    throw usageError(`--without: no feature is called "${name}"; there are ${storageFeatures.join(", ")}`);
  });
}

function presentSummary(summary: Summary): Presentation {
  const { runs, events, seconds, counters, traceHash, violation, firstSeed, hardlyHappened } = summary;
  return {
    document: summary,
    objects: [summary],
    table: (paint, widthMax) => {
      const lines = [
        `${runs} runs from seed ${firstSeed}, ${events} events in ${seconds.toFixed(1)} s`,
        ...countLines(counters, widthMax),
      ];
      if (traceHash !== undefined) lines.push(`trace ${traceHash}`);
      if (hardlyHappened.length > 0)
        lines.push(paint("red", `the runs prove nothing: hardly happened: ${hardlyHappened.join(", ")}`));
      if (violation === undefined) return lines;
      lines.push(paint("red", `VIOLATION of ${violation.text}`), `the same run again:   ${violation.replay}`);
      if (violation.shortened !== undefined) lines.push(`with less around it:  ${violation.shortened}`);
      return lines;
    },
  };
}
