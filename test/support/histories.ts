import {
  type HistoryEntry,
  type HistoryHeader,
  historyLine,
  stampOf,
} from "../../packages/leasehold/src/testing/history/journals/format.js";
import { checkHistory } from "../../packages/leasehold/src/testing/history/judge.js";
import type { HistoryReport } from "../../packages/leasehold/src/testing/history/report.js";
import type { Rule } from "../../packages/leasehold/src/testing/history/rules/violation.js";

/** Helpers for writing histories by hand. Times are in ms. Holder `a` is process 1, `b` 2, `c` 3. */

export const ns = (ms: number): bigint => BigInt(Math.round(ms * 1e6));
const pids: Record<string, number> = { a: 1, b: 2, c: 3 };
export const pidOf = (who: string): number => pids[who]!;

export interface Look {
  at: number;
  /** The duration of the look, ms. */
  took?: number;
  ok?: boolean;
  left?: number;
}

const about = (who: string, token: number) => ({
  pid: pidOf(who),
  incarnation: `${who}.1`,
  resource: "r",
  token: BigInt(token),
});

/** Samples of one lease. */
export function looks(who: string, token: number, ...all: (number | Look)[]): HistoryEntry[] {
  return all.map((one) => {
    const { at, took = 0.01, ok = true, left = 1_000 } = typeof one === "number" ? { at: one } : one;
    const [m1, m2] = [ns(at), ns(at + took)];
    return { event: "sample", m1, m2, ok, remainingMs: ok ? left : 0, ...about(who, token) };
  });
}

export function release(who: string, token: number, at: number): HistoryEntry {
  return { event: "release", m: ns(at), ...about(who, token) };
}

export function lost(who: string, token: number, at: number): HistoryEntry {
  return { event: "lost", m: ns(at), ...about(who, token) };
}

type Result = "accepted" | "refused" | "unknown";

/** An operation on the guarded resource, as its writer records it. */
export function op(who: string, token: number, result: Result, from: number, to: number): HistoryEntry {
  return { event: "op", m1: ns(from), m2: ns(to), result, ...about(who, token) };
}

/** The same operation, as the guarded resource records it. */
export function decision(event: "accepted" | "refused", token: number, at: number, order = at): HistoryEntry {
  return { event, m: ns(at), resource: "r", token: BigInt(token), order };
}

export function done(event: "killed" | "stopped" | "continued", who: string, at: number): HistoryEntry {
  return { event, m: ns(at), pid: pidOf(who) };
}

export function fault(kind: string, target: string, from: number, to?: number): HistoryEntry[] {
  const mark = (phase: "begin" | "end", at: number): HistoryEntry => ({
    event: "fault",
    m: ns(at),
    phase,
    kind,
    target,
  });
  return to === undefined ? [mark("begin", from)] : [mark("begin", from), mark("end", to)];
}

/** The same entries with other fields. */
export function changed<E extends HistoryEntry>(entries: E[], fields: object): E[] {
  return entries.map((entry) => ({ ...entry, ...fields }));
}

export function headerBy(by: string): HistoryHeader {
  return { event: "history", version: 1, run: "run-1", clock: "clock-1", by };
}

/** One journal: the entries in the order in which they would have been written. */
export function journalOf(entries: readonly HistoryEntry[], by = "all"): string {
  const sorted = entries.toSorted((one, other) => Number(stampOf(one) - stampOf(other)));
  return [headerBy(by), ...sorted].map(historyLine).join("");
}

export function check(...parts: (HistoryEntry | HistoryEntry[])[]): HistoryReport {
  return checkHistory({ "all.journal": journalOf(parts.flat()) });
}

export function rulesOf(report: HistoryReport): Rule[] {
  return report.violations.map(({ rule }) => rule);
}

/** A holder renews, is killed, and is replaced. */
export const goodTakeover = [
  looks("a", 10, { at: 0, left: 1_000 }, { at: 400, left: 600 }, { at: 500, left: 1_000 }),
  [done("killed", "a", 600)],
  looks("b", 20, 1_700, { at: 1_800, left: 900 }),
];
