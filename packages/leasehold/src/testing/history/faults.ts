import type { FaultMark, Nanoseconds } from "./journals/format.js";
import type { Halt } from "./journals/interventions.js";
import { apartMs, later } from "./journals/nanoseconds.js";
import {
  type Tenure,
  certainEnd,
  certainStart,
  expiryShown,
  successors,
  wasInterrupted,
} from "./journals/tenures.js";

/** A fault from its beginning to its end. */
interface Fault {
  readonly kind: string;
  /** The process that was halted. */
  readonly pid?: number;
  readonly from: Nanoseconds;
  /** `undefined` if the fault never ended. */
  readonly to: Nanoseconds | undefined;
}

/** The effects of one kind of fault. */
export interface FaultReport {
  readonly kind: string;
  readonly count: number;
  /** The number of tenures that ended without a release during or after such a fault, and had a successor. */
  readonly interrupted: number;
  /** The longest time without a holder after one of these, in ms; `undefined` if there were none. */
  readonly longestMs: number | undefined;
}

/** Collects the marks of fault injectors. */
export class FaultLog {
  readonly #open = new Map<string, FaultMark>();
  readonly #closed: Fault[] = [];

  /** Returns the reason if the mark is invalid. */
  add(mark: FaultMark): string | undefined {
    const { kind, target, m, phase } = mark;
    const key = `${kind}\n${target}`;
    const begun = this.#open.get(key);
    if (phase === "begin") {
      if (begun !== undefined) return `fault ${kind} of ${target} has begun already`;
      this.#open.set(key, mark);
      return undefined;
    }
    if (begun === undefined) return `fault ${kind} of ${target} ends but has not begun`;
    this.#open.delete(key);
    this.#closed.push({ kind, from: begun.m, to: m });
    return undefined;
  }

  faults(): Fault[] {
    const open = [...this.#open.values()].map(({ kind, m }): Fault => ({ kind, from: m, to: undefined }));
    return [...this.#closed, ...open];
  }
}

/**
 * For each kind of fault, the tenures that it may have interrupted, and how long nobody held their resources
 * after that: from the beginning of the fault (or, if later, the last look that found the lease held) to the
 * successor's certain start.
 */
export function reportFaults(
  log: FaultLog,
  halts: readonly Halt[],
  byResource: ReadonlyMap<string, readonly Tenure[]>,
): FaultReport[] {
  const faults: Fault[] = [...log.faults(), ...halts];
  const counts = new Map<string, number>();
  for (const { kind } of faults) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const gaps = new Map<string, { interrupted: number; longestMs: number }>();
  for (const interruption of interruptionsOf(byResource, faults)) {
    for (const [kind, gapMs] of interruption) {
      const { interrupted, longestMs } = gaps.get(kind) ?? { interrupted: 0, longestMs: 0 };
      gaps.set(kind, { interrupted: interrupted + 1, longestMs: Math.max(longestMs, gapMs) });
    }
  }
  return [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([kind, count]) => {
      const { interrupted = 0, longestMs } = gaps.get(kind) ?? {};
      return { kind, count, interrupted, longestMs };
    });
}

/**
 * For each interrupted tenure with a successor, the time without a holder after each kind of fault, in ms.
 */
function* interruptionsOf(
  byResource: ReadonlyMap<string, readonly Tenure[]>,
  faults: readonly Fault[],
): Generator<Map<string, number>> {
  const holders = new Set([...byResource.values()].flatMap((tenures) => tenures.map(({ pid }) => pid)));
  for (const tenures of byResource.values()) {
    for (const [index, successor] of successors(tenures).entries()) {
      const tenure = tenures[index]!;
      if (successor === undefined || !wasInterrupted(tenure)) continue;
      const lastEnd = endOfAllBefore(successor, tenures, index);
      const longest = new Map<string, number>();
      for (const fault of faults) {
        // A fault of a holder concerns only that holder; a fault of any other process may concern every
        // holder.
        if (fault.pid !== undefined && fault.pid !== tenure.pid && holders.has(fault.pid)) continue;
        if (!mayHaveEnded(fault, tenure)) continue;
        const gapMs = Math.max(0, apartMs(later(fault.from, lastEnd), certainStart(successor)));
        longest.set(fault.kind, Math.max(gapMs, longest.get(fault.kind) ?? 0));
      }
      yield longest;
    }
  }
}

/** Other shared tenures may have outlasted the interrupted one. */
function endOfAllBefore(successor: Tenure, tenures: readonly Tenure[], index: number): Nanoseconds {
  let end = certainEnd(tenures[index]!);
  for (let next = index + 1; tenures[next] !== successor; next += 1)
    end = later(end, certainEnd(tenures[next]!));
  return end;
}

/**
 * A lease is interrupted when it is not renewed, so the fault must fall between the last renewal and the end.
 */
function mayHaveEnded({ from, to }: Fault, tenure: Tenure): boolean {
  const endedBy = tenure.gone?.m2 ?? expiryShown(tenure);
  return from <= endedBy && (to === undefined || to >= tenure.renewedAt);
}
