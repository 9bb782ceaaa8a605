import type { Nanoseconds } from "../journals/format.js";
import { type Tenure, certainStart, excludes } from "../journals/tenures.js";
import { type Violation, nameOf } from "./violation.js";

export interface PauseVerdict {
  readonly violations: Violation[];
  /** The number of first looks after a pause with a takeover that correctly found the lease lost. */
  readonly lossesFound: number;
}

/**
 * A process that was stopped while another took over must find its lease lost. Expects the tenures of one
 * resource in the order of their certain starts, and the times at which each process was continued.
 */
export function judgePauses(
  tenures: readonly Tenure[],
  continuations: ReadonlyMap<number, readonly Nanoseconds[]>,
): PauseVerdict {
  const violations: Violation[] = [];
  let lossesFound = 0;
  for (const [index, tenure] of tenures.entries()) {
    const { resource, last, gone } = tenure;
    for (const m of continuations.get(tenure.pid) ?? []) {
      if (tenure.first.m1 > m || (tenure.releasedAt ?? m) < m) continue;
      if (last.m1 >= m) {
        const successor = successorBefore(m, tenures, index);
        if (successor === undefined) continue;
        const text = `${nameOf(tenure)} was found held after a pause in which ${nameOf(successor)} took over`;
        violations.push({ rule: "held-after-pause", resource, text });
      } else if (gone !== undefined && gone.m1 >= m) {
        if (successorBefore(gone.m1, tenures, index) !== undefined) lossesFound += 1;
      }
    }
  }
  return { violations, lossesFound };
}

/** Another holder's tenure that certainly began when this one had certainly begun, and before `m`. */
function successorBefore(m: Nanoseconds, tenures: readonly Tenure[], index: number): Tenure | undefined {
  const tenure = tenures[index]!;
  for (let next = index + 1; next < tenures.length; next += 1) {
    const other = tenures[next]!;
    if (certainStart(other) >= m) return undefined;
    if (!excludes(other, tenure)) continue;
    // If its first look began earlier, that tenure may have been over before this one.
    if (other.incarnation !== tenure.incarnation && other.first.m1 >= certainStart(tenure)) return other;
  }
  return undefined;
}
