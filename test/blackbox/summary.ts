import { type FaultKind, faultKinds } from "./plan.js";
import type { RunResult } from "./run.js";
import { recoveryMs } from "./settings.js";

/** The result of a run, as one JSON object. */
export interface Summary {
  readonly verdict: "clean" | "violated" | "void";
  readonly why: readonly string[];
  readonly seed: number;
  readonly seconds: number;
  readonly faults: readonly FaultLine[];
  readonly takeoverMsMax: number;
  readonly tenures: number;
  readonly takeovers: number;
  readonly handovers: number;
  readonly renewals: number;
  readonly looks: number;
  readonly inconclusive: number;
  readonly lossesFoundAfterPause: number;
  readonly operations: { readonly accepted: number; readonly refused: number; readonly unknown: number };
  readonly starts: number;
  readonly alarms: number;
}

interface FaultLine {
  readonly kind: FaultKind;
  readonly count: number;
  /** The number of packets dropped, or of messages delayed, duplicated or reordered. */
  readonly touched?: number;
  /** Tenures that ended without a release during the fault or after it. */
  readonly interrupted: number;
  /** Longest time without a holder after the fault, ms. */
  readonly longestMs?: number;
  /** The promised maximum of `longestMs`, ms: `takeoverMsMax` while a majority works. */
  readonly promisedMs?: number;
}

/** In runs of this many minutes or more, every kind of fault must have happened. */
const minutesThatShowAll = 5;

/** The restart time of a killed process on a busy machine. The protocol's bound doesn't include it. */
const restartMs = 1_000;

export function summarize(result: RunResult, minutes: number): Summary {
  const { judgement, seed, seconds, takeoverMsMax, accidents, touched } = result;
  const faults = faultKinds.map((kind): FaultLine => {
    const found = judgement.faults.find((fault) => fault.kind === kind);
    const promisedMs = promiseFor(kind, takeoverMsMax);
    return {
      kind,
      count: found?.count ?? 0,
      ...(touched.has(kind) && { touched: touched.get(kind)! }),
      interrupted: found?.interrupted ?? 0,
      ...(found?.longestMs !== undefined && { longestMs: Math.round(found.longestMs) }),
      ...(promisedMs !== undefined && { promisedMs }),
    };
  });
  const never = faults.filter(({ count }) => count === 0).map(({ kind }) => kind);
  const steps = faults.find(({ kind }) => kind === "clock-step")!.count;
  const voidBecause = [
    ...judgement.voidBecause,
    ...(judgement.operations.accepted === 0 ? ["nothing was done under any lease"] : []),
    ...(minutes >= minutesThatShowAll && never.length > 0 ? [`never happened: ${never.join(", ")}`] : []),
    ...faults.filter(({ touched: what }) => what === 0).map(({ kind }) => `touched nothing: ${kind}`),
    ...(steps > 0 && judgement.alarms === 0 ? ["clocks stepped, and nobody raised an alarm"] : []),
    ...accidents,
  ];
  const violations = judgement.violations.map(({ rule, text }) => `${rule}: ${text}`);
  return {
    verdict: violations.length > 0 ? "violated" : voidBecause.length > 0 ? "void" : "clean",
    why: [...violations, ...voidBecause],
    seed,
    seconds: Math.round(seconds),
    faults,
    takeoverMsMax,
    tenures: judgement.tenures,
    takeovers: judgement.takeovers,
    handovers: judgement.handovers,
    renewals: judgement.renewals,
    looks: judgement.samples,
    inconclusive: judgement.inconclusive,
    lossesFoundAfterPause: judgement.lossesFoundAfterPause,
    operations: judgement.operations,
    starts: judgement.boots,
    alarms: judgement.alarms,
  };
}

/**
 * The bound holds while a majority hears everything; after a restart of all members, their recovery wait is
 * added.
 */
function promiseFor(kind: FaultKind, takeoverMsMax: number): number | undefined {
  if (kind === "all-members-killed") return takeoverMsMax + recoveryMs + restartMs;
  const crash: readonly FaultKind[] = ["holder-killed", "holder-killed-slow", "holder-stopped"];
  return crash.includes(kind) ? takeoverMsMax : undefined;
}

export function summaryLines(summary: Summary): string[] {
  const { operations, faults } = summary;
  const row = (kind: string, ...cells: string[]): string =>
    `  ${kind.padEnd(20)}${cells.map((cell) => cell.padStart(12)).join("")}`;
  return [
    `${summary.verdict}: seed ${summary.seed}, ${summary.seconds} s`,
    ...summary.why.map((one) => `  ${one}`),
    "",
    row("fault", "times", "touched", "interrupted", "nobody for", "promised"),
    ...faults.map(({ kind, count, touched, interrupted, longestMs, promisedMs }) =>
      row(
        kind,
        String(count),
        String(touched ?? "-"),
        String(interrupted),
        time(longestMs),
        time(promisedMs),
      ),
    ),
    "",
    `  ${summary.tenures} tenures: ${summary.takeovers} takeovers, ${summary.handovers} hand-overs, ${summary.renewals} renewals`,
    `  ${operations.accepted} operations accepted, ${operations.refused} refused, ${operations.unknown} without answer`,
    `  ${summary.looks} looks, ${summary.inconclusive} pairs of tenures inconclusive, ` +
      `${summary.lossesFoundAfterPause} losses found after a pause`,
    `  ${summary.starts} starts of holders, ${summary.alarms} clock alarms`,
  ];
}

function time(ms: number | undefined): string {
  return ms === undefined ? "-" : `${(ms / 1_000).toFixed(2)} s`;
}
