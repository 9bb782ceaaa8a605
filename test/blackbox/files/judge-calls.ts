import { getOrInsert } from "../../../packages/leasehold/src/common/maps.js";
import {
  type FileCall as Step,
  type FileHistory,
  judgeFile,
} from "../../../packages/sim/src/files/history.js";
import type { CallEntry, FileCall } from "./calls.js";

/** The judge's result for the calls of a run. */
export interface CallsJudgement {
  readonly violations: readonly string[];
  /**
   * The histories by which the calls were judged, one for each file or place in a file, and how many of them
   * were too hard to decide.
   */
  readonly histories: number;
  readonly undecided: number;
  readonly done: Readonly<Record<string, number>>;
  readonly uncertain: number;
  readonly refused: number;
  /** Pairs of reads that prove that a file was there under its old name or its new one. */
  readonly pairs: number;
}

/** The most calls that a report of a violation shows. */
const shownMax = 4;

/**
 * Judges calls without any knowledge of leases, primaries or faults. Each file must behave as a single copy:
 * acknowledged writes are there, and a value that was read doesn't disappear again.
 */
export function judgeCalls(entries: readonly CallEntry[]): CallsJudgement {
  const histories = new Map<string, FileHistory>();
  const done: Record<string, number> = {};
  let [uncertain, refused] = [0, 0];
  for (const entry of entries) {
    const { outcome, call } = entry;
    if (outcome === undefined || isUncertain(outcome)) uncertain += 1;
    else if ("error" in outcome && outcome.error !== "FILE_NOT_FOUND") refused += 1;
    else done[call.kind] = (done[call.kind] ?? 0) + 1;
    for (const { of, step } of stepsOf(call))
      add(
        getOrInsert(histories, of, () => ({ operations: [], uncertain: [] })),
        step,
        entry,
      );
  }
  const violations: string[] = [];
  let undecided = 0;
  for (const [name, history] of histories) {
    const isPlace = name.includes("#");
    const { verdict, stuckAt } = judgeFile(isPlace ? withoutUnseen(history) : history);
    if (verdict === "unknown") undecided += 1;
    if (verdict !== "violated") continue;
    const shown = stuckAt.slice(0, shownMax).map((operation) => JSON.stringify(operation));
    violations.push(
      `${name} does not behave as a single copy: none of these calls can come next: ${shown.join(" ")}`,
    );
  }
  const { pairs, lost } = judgePairs(entries);
  return {
    violations: [...violations, ...lost],
    histories: histories.size,
    undecided,
    done,
    uncertain,
    refused,
    pairs,
  };
}

function isUncertain(outcome: NonNullable<CallEntry["outcome"]>): boolean {
  return "error" in outcome && outcome.error === "FILE_UNCERTAIN";
}

/**
 * The steps of a call on each file. A rename copies and then removes, so its target may be seen empty
 * meanwhile.
 */
function stepsOf(call: FileCall): readonly { readonly of: string; readonly step: Step }[] {
  if (call.kind === "sync") return [];
  if (call.kind === "rename") {
    const { path, to, text } = call;
    return [
      { of: to, step: { kind: "create" } },
      { of: to, step: { kind: "write", offset: 0, text } },
      { of: path, step: { kind: "remove" } },
    ];
  }
  const { path, ...step } = call;
  // Places are independent: the sizes of their files never change.
  if (!path.startsWith("places/")) return [{ of: path, step }];
  if (step.kind === "create") return [];
  const { offset } = step as Step & { kind: "read" };
  return [{ of: `${path}#${offset}`, step: { ...step, offset: 0 } as Step }];
}

function add({ operations, uncertain }: FileHistory, step: Step, entry: CallEntry): void {
  const { call, calledAt, returnedAt, outcome } = entry;
  const changes = step.kind !== "read" && step.kind !== "stat";
  if (outcome === undefined) {
    if (changes) operations.push({ input: step, calledAt });
  } else if ("result" in outcome) {
    operations.push({ input: step, output: outcome.result, calledAt, returnedAt: returnedAt! });
  } else if (call.kind === "rename") {
    // A refused rename may have been done in part, whatever the error.
    operations.push({ input: step, calledAt });
  } else if (outcome.error === "FILE_NOT_FOUND") {
    operations.push({ input: step, output: "missing", calledAt, returnedAt: returnedAt! });
  } else if (isUncertain(outcome) && changes) {
    if (outcome.isSettledNext) uncertain.push({ input: step, calledAt, saidAt: returnedAt! });
    else operations.push({ input: step, calledAt });
  }
}

/**
 * Leaves out uncertain writes of texts that nobody has read: each text is written once, so such a write needs
 * no position in the order. A place exists from its first write on.
 */
function withoutUnseen({ operations, uncertain }: FileHistory): FileHistory {
  const seen = new Set(
    operations.flatMap(({ output }) => (typeof output === "object" ? (output.text ?? []) : [])),
  );
  const isSeen = (input: Step): boolean => input.kind === "write" && seen.has(input.text);
  const created = { input: { kind: "create" }, output: {}, calledAt: 0, returnedAt: 0 } as const;
  return {
    operations: [
      created,
      ...operations.filter(({ input, returnedAt }) => returnedAt !== undefined || isSeen(input)),
    ],
    uncertain: uncertain.filter(({ input }) => isSeen(input)),
  };
}

/**
 * A reader that finds nothing under the old name must then find the whole file under the new name, until that
 * file is changed in turn.
 */
function judgePairs(entries: readonly CallEntry[]): { pairs: number; lost: string[] } {
  const inOrder = entries.toSorted((one, other) => one.calledAt - other.calledAt);
  const reads = new Map<string, CallEntry[]>();
  const changes = new Map<string, CallEntry[]>();
  for (const entry of inOrder) {
    const { call } = entry;
    getOrInsert(call.kind === "read" ? reads : changes, call.path, () => []).push(entry);
    if (call.kind === "rename") getOrInsert(changes, call.to, () => []).push(entry);
  }
  const lost: string[] = [];
  let pairs = 0;
  for (const { call, calledAt } of inOrder) {
    if (call.kind !== "rename") continue;
    const { path, to, text } = call;
    const isAfter = (other: CallEntry): boolean => other.calledAt > calledAt;
    const until = changes.get(to)!.find(isAfter)?.calledAt ?? Infinity;
    const answeredIn = (of: string, from: number): CallEntry[] =>
      (reads.get(of) ?? []).filter((read) => read.calledAt > from && (read.returnedAt ?? Infinity) < until);
    const gone = answeredIn(path, calledAt).find((read) => foundBy(read) === "missing");
    if (gone === undefined) continue;
    for (const after of answeredIn(to, gone.returnedAt!)) {
      const found = foundBy(after);
      if (found === undefined) continue;
      pairs += 1;
      if (found !== text)
        lost.push(`${path} was renamed to ${to} and no longer there, but ${to} was: ${found}`);
    }
  }
  return { pairs, lost };
}

/** `undefined` if the read gave no definite answer. */
function foundBy({ outcome }: CallEntry): string | undefined {
  if (outcome === undefined) return undefined;
  if ("result" in outcome) return outcome.result.text;
  return outcome.error === "FILE_NOT_FOUND" ? "missing" : undefined;
}
