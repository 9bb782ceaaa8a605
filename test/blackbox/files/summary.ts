import { type FileFault, fileFaults } from "./faults.js";
import type { FilesResult } from "./run.js";

/** The result of a run with files, as one JSON object. */
export interface FilesSummary {
  readonly verdict: "clean" | "violated" | "void";
  readonly why: readonly string[];
  readonly seed: number;
  readonly seconds: number;
  readonly faults: readonly { readonly kind: FileFault; readonly times: number; readonly touched?: number }[];
  readonly calls: Readonly<Record<string, number>>;
  readonly uncertain: number;
  readonly refused: number;
  readonly histories: number;
  readonly undecided: number;
  readonly pairs: number;
  readonly resets: number;
  readonly files: number;
  readonly blocks: number;
}

/** In runs of this many minutes or more, every kind of fault must have happened. */
const minutesThatShowAll = 3;
/** A run with fewer calls proves nothing. */
const callsMin = 100;
/** The largest share of histories that may be too hard to decide. */
const undecidedShareMax = 0.05;

export function summarizeFiles(result: FilesResult, minutes: number): FilesSummary {
  const { calls, disks, accidents, seed, seconds, resets } = result;
  const faults = fileFaults.map((kind) => ({ kind, ...(result.faults.get(kind) ?? { times: 0 }) }));
  const never = faults.filter(({ times }) => times === 0).map(({ kind }) => kind);
  const done = Object.values(calls.done).reduce((sum, count) => sum + count, 0);
  const voidBecause = [
    ...(done < callsMin ? [`only ${done} calls were done`] : []),
    ...(calls.undecided > undecidedShareMax * calls.histories
      ? [`${calls.undecided} of ${calls.histories} histories could not be judged`]
      : []),
    ...(minutes >= minutesThatShowAll && never.length > 0 ? [`never happened: ${never.join(", ")}`] : []),
    ...faults.filter(({ touched }) => touched === 0).map(({ kind }) => `touched nothing: ${kind}`),
    ...accidents,
  ];
  const violations = [...calls.violations, ...disks.differences];
  return {
    verdict: violations.length > 0 ? "violated" : voidBecause.length > 0 ? "void" : "clean",
    why: [...violations, ...voidBecause],
    seed,
    seconds: Math.round(seconds),
    faults,
    calls: calls.done,
    uncertain: calls.uncertain,
    refused: calls.refused,
    histories: calls.histories,
    undecided: calls.undecided,
    pairs: calls.pairs,
    resets,
    files: disks.files,
    blocks: disks.blocks,
  };
}

export function filesSummaryLines(summary: FilesSummary): string[] {
  const { faults, calls } = summary;
  const row = (kind: string, ...cells: string[]): string =>
    `  ${kind.padEnd(20)}${cells.map((cell) => cell.padStart(12)).join("")}`;
  const done = Object.entries(calls).map(([kind, count]) => `${count} ${kind}`);
  return [
    `${summary.verdict}: seed ${summary.seed}, ${summary.seconds} s`,
    ...summary.why.map((one) => `  ${one}`),
    "",
    row("fault", "times", "touched"),
    ...faults.map(({ kind, times, touched }) => row(kind, String(times), String(touched ?? "-"))),
    "",
    `  calls done: ${done.join(", ")}; ${summary.uncertain} uncertain, ${summary.refused} refused`,
    `  ${summary.histories} histories judged, ${summary.undecided} of them undecided; ` +
      `${summary.pairs} pairs of reads around a rename`,
    `  ${summary.resets} tenures of primaries; ${summary.files} files with ${summary.blocks} blocks the same on all disks`,
  ];
}
