import {
  Batch,
  failureText,
  type RunWanted,
  shorten,
  type SimResult,
  type Simulator,
} from "../kit/simulator.js";
import { packageVersion } from "leasehold/runtime";
import { exitCode, usageError, type Presentation, present, settingsOf } from "leasehold/cli";
import { countLines, RunsWanted, type SimCommandOptions, simulatorFailed, wordsOf } from "./sim-batch.js";

/**
 * In a batch of at least this many runs every important event must have occurred often enough; otherwise the
 * runs prove nothing.
 */
export const runsThatShowAll = 150;

/**
 * An event has occurred often enough if it occurred once in this many runs. The rarest occur in one run in
 * ten.
 */
export const runsForOnce = 50;

/** The grounds. Each is loaded on demand. */
const grounds = {
  flease: async () => (await import("../flease/simulator.js")).simulator,
  delta: async () => (await import("../delta/simulator.js")).simulator,
  files: async () => {
    const { simulatorOf } = await import("../files/simulator.js");
    const { MemoryCluster } = await import("leasehold/inner/testing/memory-cluster.js");
    return simulatorOf((options) => new MemoryCluster(options));
  },
  names: async () => {
    const { simulatorOfNames } = await import("../files/names/simulator.js");
    const { MemoryCluster } = await import("leasehold/inner/testing/memory-cluster.js");
    return simulatorOfNames((options) => new MemoryCluster(options));
  },
  grid: async () => (await import("../flease-stores/simulator.js")).simulator,
  core: async () => (await import("../core/simulator.js")).simulator,
} satisfies Record<string, () => Promise<Simulator>>;

export type Ground = keyof typeof grounds;

const theatreAddress = "127.0.0.1:7460";

interface Summary {
  readonly version: string;
  readonly ground: Ground;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly eventsPerSecond: number;
  readonly counters: Readonly<Record<string, number>>;
  /** The trace hash of a single run. */
  readonly traceHash?: string;
  readonly hardlyHappened: readonly string[];
  readonly story?: readonly string[];
  readonly violation?: {
    readonly invariant: string;
    readonly text: string;
    readonly replay: string;
    /** The command that repeats the shortened failure. */
    readonly shortened: string;
    readonly shortenedEvents: number;
    /** The command that plays the run in a browser, if that is possible. */
    readonly played?: string;
  };
}

/**
 * `leasehold sim`: random runs of the product on virtual time. The seed decides everything in a run. Exit
 * codes distinguish a violation from a lack of progress; any other error is a fault of the simulator.
 */
export async function sim(options: SimCommandOptions): Promise<number> {
  const { output } = settingsOf(options);
  const { ground = "flease" } = options;
  const simulator = await grounds[ground]();
  refuseUnsupported(options, ground, simulator);
  const without = parseFeatures(options.without, simulator.features);
  const wanted = new RunsWanted(options);
  const { firstSeed, isOne, story, told } = wanted;
  if (options.theatre !== undefined) {
    const { serveTheatre } = await import("./theatre.js");
    const address = options.theatre === true ? theatreAddress : options.theatre;
    return serveTheatre(address, isOne ? { seed: firstSeed, mode: options.mode, without } : undefined);
  }
  const runOf = (seed: number): RunWanted => ({
    seed,
    mode: options.mode ?? simulator.modes[seed % simulator.modes.length],
    without,
    story,
  });
  const batch = new Batch<SimResult>({ runs: 0, events: 0 });
  while (batch.goesOn(() => wanted.goOn(batch.counters))) {
    const run = runOf(firstSeed + batch.counters.runs);
    try {
      batch.add(await simulator.run(run));
    } catch (error) {
      throw simulatorFailed(error, replayOf(ground, run));
    }
  }
  const { failed, last } = batch;
  const counters: Readonly<Record<string, number>> = { ...batch.counters };
  const { runs, events } = batch.counters;
  const { seconds } = wanted;
  const mustShowAll = runs >= runsThatShowAll && without.length === 0;
  const summary: Summary = {
    version: packageVersion(),
    ground,
    firstSeed,
    runs,
    events,
    seconds: Number(seconds.toFixed(3)),
    eventsPerSecond: Math.round(events / seconds),
    counters,
    ...(isOne && last !== undefined && { traceHash: last.traceHash }),
    hardlyHappened: mustShowAll ? hardlyHappened(counters, runs, options.mode, simulator) : [],
    ...(told && { story: told }),
    ...(failed && { violation: await violationOf(ground, simulator, runOf(failed.seed), failed) }),
  };
  present(output, presentSummary(summary));
  if (failed?.violation !== undefined)
    return exitCode(simulator.isLiveness(failed.violation.invariant) ? "stuck" : "violation");
  return exitCode(summary.hardlyHappened.length > 0 ? "stuck" : "ok");
}

function refuseUnsupported(
  { mode, story, theatre }: SimCommandOptions,
  ground: Ground,
  has: Simulator,
): void {
  if (mode !== undefined && has.modes.length === 0)
    throw usageError(`--mode belongs to the simulated cluster, and not to --ground ${ground}`);
  if (theatre !== undefined && ground !== "flease")
    throw usageError(`--theatre plays the simulated cluster, and not --ground ${ground}`);
  if (story === true && !has.tellsStories)
    throw usageError(`--ground ${ground} tells no story: leave --story out`);
}

function parseFeatures(text: string | undefined, features: readonly string[]): readonly string[] {
  const names = text?.split(",") ?? [];
  for (const name of names)
    if (!features.includes(name))
      throw usageError(
        `--without: no feature is called "${name}"; there are ${features.join(", ") || "none here"}`,
      );
  return names;
}

function hardlyHappened(
  counters: Readonly<Record<string, number>>,
  runs: number,
  mode: string | undefined,
  simulator: Simulator,
): string[] {
  return Object.entries(counters)
    .filter(([name, count]) => count * runsForOnce < runs && simulator.canHappen(name, mode))
    .map(([name]) => name);
}

async function violationOf(
  ground: Ground,
  { run, features }: Simulator,
  { story: _told, ...silent }: RunWanted,
  failed: SimResult,
): Promise<NonNullable<Summary["violation"]>> {
  const shorter = await shorten<RunWanted, SimResult>(run, features, silent, failed);
  return {
    invariant: failed.violation!.invariant,
    text: failureText(failed),
    replay: replayOf(ground, silent),
    shortened: replayOf(ground, shorter.options),
    shortenedEvents: shorter.result.counters.events,
    ...(ground === "flease" && {
      played: replayOf(ground, shorter.options).replace("--story", "--theatre"),
    }),
  };
}

function replayOf(ground: Ground, { seed, mode, without }: RunWanted): string {
  const on = ground === "flease" ? "" : ` --ground ${ground}`;
  const clocks = mode === undefined ? "" : ` --mode ${mode}`;
  const left = without.length === 0 ? "" : ` --without ${without.join(",")}`;
  const story = ground === "grid" ? "" : " --story";
  return `leasehold sim${on} --seed ${seed}@${packageVersion()}${clocks}${left}${story}`;
}

function presentSummary(summary: Summary): Presentation {
  return {
    document: summary,
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
        `the same run again:         ${violation.replay}`,
        `with less around it:        ${violation.shortened}`,
        ...(violation.played === undefined ? [] : [`played in the browser:      ${violation.played}`]),
      ];
    },
  };
}

/** Replaces sums of durations by means. */
function withMeans(counters: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const { handOverMs, handOvers = 0 } = counters;
  return handOverMs === undefined
    ? counters
    : { ...counters, handOverMs: handOverMs / Math.max(1, handOvers) };
}
