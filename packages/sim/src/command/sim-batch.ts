import {
  CommandFailure,
  usageError,
  printLine,
  printProgress,
  type SharedOptions,
  settingsOf,
} from "leasehold/cli";
import { packageVersion } from "leasehold/runtime";

/** Minutes without `--minutes` or `--runs`. */
const minutesDefault = 1;

/** The pause between two progress messages, ms. */
const progressEveryMs = 1_000;

/** The options of `leasehold sim` as commander hands them over. */
export interface SimCommandOptions extends SharedOptions {
  readonly seed?: string;
  readonly minutes?: number;
  readonly runs?: number;
  readonly mode?: string;
  readonly without?: string;
  readonly story?: true;
  /** The address; `true` without one. */
  readonly theatre?: string | true;
  readonly ground?: "core" | "delta" | "files" | "flease" | "grid" | "names";
}

/** The requested runs, of any ground. */
export class RunsWanted {
  readonly firstSeed: number;
  /** A single run, by its seed. */
  readonly isOne: boolean;
  /** Receives the story of that run, if requested. */
  readonly story: ((line: string) => void) | undefined;
  /** The story, if it is part of the document. */
  readonly told: readonly string[] | undefined;
  readonly #startMs = performance.now();
  readonly #endMs: number;
  readonly #runsMax: number;
  #progressMs = this.#startMs;

  constructor(options: SimCommandOptions) {
    const { seed, minutes, runs } = options;
    this.firstSeed = seed === undefined ? Math.floor(Date.now() / 1_000) : parseSeed(seed);
    this.isOne = seed !== undefined && minutes === undefined && runs === undefined;
    if (options.story === true) {
      if (!this.isOne) throw usageError("--story needs the --seed of one run");
      const told: string[] = [];
      const isForPeople = settingsOf(options).output === "table";
      this.story = isForPeople ? (line) => void printLine(line) : (line) => void told.push(line);
      this.told = isForPeople ? undefined : told;
    }
    this.#runsMax = this.isOne ? 1 : (runs ?? Infinity);
    const lastsMinutes = minutes ?? (runs === undefined ? minutesDefault : Infinity);
    this.#endMs = this.isOne ? Infinity : this.#startMs + lastsMinutes * 60_000;
  }

  /** Whether another run should follow. */
  goOn({ runs, events }: { readonly runs: number; readonly events: number }): boolean {
    const nowMs = performance.now();
    if (runs < this.#runsMax && nowMs < this.#endMs) {
      if (nowMs - this.#progressMs >= progressEveryMs) {
        this.#progressMs = nowMs;
        printProgress(`${runs} runs, ${events} events, ${this.#left(runs, nowMs)} to go`);
      }
      return true;
    }
    printProgress("");
    return false;
  }

  get seconds(): number {
    return (performance.now() - this.#startMs) / 1_000;
  }

  #left(runs: number, nowMs: number): string {
    if (this.#endMs === Infinity) return `${this.#runsMax - runs} runs`;
    return `${Math.ceil((this.#endMs - nowMs) / 1_000)} s`;
  }
}

/** The error for a batch in which the simulator itself failed, with the command that repeats the run. */
export function simulatorFailed(error: unknown, replay: string): CommandFailure {
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new CommandFailure("unexpected", `the simulator itself failed: ${detail}; the same run: ${replay}`);
}

/** A seed determines a run only for one version: another version draws a different plan from it. */
function parseSeed(text: string): number {
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

const countsPerLineMax = 4;
const nameCells = 22;
const countCells = 10;

/** Counters, in as many columns as fit. */
export function countLines(counters: Readonly<Record<string, number>>, widthMax: number): string[] {
  const texts = Object.entries(counters)
    .filter(([name]) => name !== "runs" && name !== "events")
    .map(
      ([name, count]) =>
        `${wordsOf(name).padStart(nameCells)} ${String(Math.round(count)).padEnd(countCells)}`,
    );
  const fit = Math.floor(widthMax / (nameCells + 1 + countCells));
  const perLine = Math.max(1, Math.min(countsPerLineMax, fit));
  const lines: string[] = [];
  for (let at = 0; at < texts.length; at += perLine)
    lines.push(
      texts
        .slice(at, at + perLine)
        .join("")
        .trimEnd(),
    );
  return lines;
}

/** `takeoversAfterCrash` in words. */
export function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/ ms$/, ", ms");
}
