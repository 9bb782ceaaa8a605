import { type ClockMode, clockModes } from "../../sim/clocks.js";
import { Counters, type CounterName } from "../../sim/counters.js";
import { type Feature, features, isFeature } from "../../sim/features.js";
import { type SimOptions, type SimResult, failureText, simulate } from "../../sim/run.js";
import { shorten } from "../../sim/shorten.js";
import type { StorageCounters } from "../../sim/storage/counters.js";
import { exitCode } from "../exit-codes.js";
import { usageError } from "../failure.js";
import { type Presentation, present } from "../output/present.js";
import { sayLine } from "../say.js";
import { type SharedOptions, settingsOf } from "../settings.js";
import { packageVersion } from "../version.js";

/** The options of `leasehold sim` as commander hands them over. */
export interface SimCommandOptions extends SharedOptions {
  readonly seed?: string;
  readonly minutes?: number;
  readonly runs?: number;
  readonly mode?: ClockMode;
  readonly without?: string;
  readonly story?: true;
  readonly ground?: "delta" | "flease";
}

/** Without `--minutes` or `--runs`, so long. */
export const minutesDefault = 1;

/** From so many runs on, whatever matters must have happened at least once: otherwise they prove nothing (V). */
const runsThatShowAll = 150;

/** What may well not happen. */
const rare: ReadonlySet<CounterName> = new Set(["staleRefusals", "floorRefusals"]);

interface Summary {
  readonly version: string;
  readonly firstSeed: number;
  readonly runs: number;
  readonly events: number;
  readonly seconds: number;
  readonly eventsPerSecond: number;
  readonly counters: Counters;
  /** Of the only run. */
  readonly traceHash?: string;
  readonly neverHappened: readonly CounterName[];
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
  const firstSeed = options.seed === undefined ? Math.floor(Date.now() / 1_000) : parseSeed(options.seed);
  const without = parseFeatures(options.without);
  const story = options.story === true ? (line: string) => void sayLine(line) : undefined;
  if (story !== undefined && options.seed === undefined)
    throw usageError("--story needs the --seed of a run");
  const one = options.seed !== undefined && options.minutes === undefined && options.runs === undefined;
  const counters = new Counters();
  const startMs = performance.now();
  const endMs =
    startMs + (options.minutes ?? (options.runs === undefined ? minutesDefault : Infinity)) * 60_000;
  const runsMax = one ? 1 : (options.runs ?? Infinity);
  let last: SimResult | undefined;
  let lastOptions: SimOptions | undefined;
  for (let runs = 0; runs < runsMax && performance.now() < endMs; runs += 1) {
    const seed = firstSeed + runs;
    lastOptions = { seed, mode: options.mode ?? modeOf(seed), without, ...(story && { story }) };
    last = await simulate(lastOptions);
    counters.add(last.counters);
    if (last.violation !== undefined) break;
  }
  const seconds = (performance.now() - startMs) / 1_000;
  const summary: Summary = {
    version: packageVersion(),
    firstSeed,
    runs: counters.runs,
    events: counters.events,
    seconds: Number(seconds.toFixed(3)),
    eventsPerSecond: Math.round(counters.events / seconds),
    counters,
    ...(one && last !== undefined && { traceHash: last.traceHash }),
    neverHappened: counters.runs < runsThatShowAll || without.length > 0 ? [] : neverHappened(counters),
    ...(last?.violation !== undefined && { violation: await violationOf(lastOptions!, last) }),
  };
  // A story is told as it happens; a document for programs must stand alone.
  if (story === undefined || output === "table") present(output, presentSummary(summary));
  return exitCodeOf(summary);
}

function exitCodeOf({ violation, neverHappened: never }: Summary): number {
  if (violation !== undefined) return exitCode(violation.invariant.startsWith("L") ? "stuck" : "violation");
  return exitCode(never.length > 0 ? "stuck" : "ok");
}

/** In which clock mode a seed runs when nobody says: so that one number is enough to run it again. */
function modeOf(seed: number): ClockMode {
  return clockModes[seed % clockModes.length]!;
}

/** A seed stands for a run of one version only: another version draws other plans from it. */
export function parseSeed(text: string): number {
  const [number = "", version] = text.split("@");
  const seed = Number(number);
  if (!/^\d+$/.test(number) || !Number.isSafeInteger(seed))
    throw usageError(
      `--seed: a whole number, or one with its version such as 7@${packageVersion()}, and not "${text}"`,
    );
  if (version !== undefined && version !== packageVersion())
    throw usageError(
      `--seed: ${number} is a seed of version ${version}; in ${packageVersion()} it would be another run`,
    );
  return seed;
}

function parseFeatures(text: string | undefined): readonly Feature[] {
  if (text === undefined) return [];
  return text.split(",").map((name) => {
    if (isFeature(name)) return name;
    throw usageError(`--without: no feature is called "${name}"; there are ${features.join(", ")}`);
  });
}

function neverHappened(counters: Counters): CounterName[] {
  const names = Object.keys(counters) as CounterName[];
  return names.filter((name) => counters[name] === 0 && !rare.has(name));
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
    table: (paint) => {
      const { runs, events, seconds, eventsPerSecond, counters, traceHash, violation, firstSeed } = summary;
      const lines = [
        `${runs} runs from seed ${firstSeed}, ${events} events in ${seconds.toFixed(1)} s: ${eventsPerSecond} events a second`,
        ...countLines(counters),
      ];
      if (traceHash !== undefined) lines.push(`trace ${traceHash}`);
      if (summary.neverHappened.length > 0)
        lines.push(
          paint("red", `the runs prove nothing: never happened: ${summary.neverHappened.join(", ")}`),
        );
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

const countsPerLine = 4;

export function countLines(counters: Counters | StorageCounters): string[] {
  const texts = Object.entries(counters)
    .filter(([name]) => name !== "runs" && name !== "events")
    .map(([name, count]) => `${wordsOf(name).padStart(22)} ${String(Math.round(count)).padEnd(9)}`);
  const lines: string[] = [];
  for (let at = 0; at < texts.length; at += countsPerLine)
    lines.push(
      texts
        .slice(at, at + countsPerLine)
        .join("")
        .trimEnd(),
    );
  return lines;
}

/** `takeoversAfterCrash` as people write it. */
function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/ ms$/, ", ms");
}
