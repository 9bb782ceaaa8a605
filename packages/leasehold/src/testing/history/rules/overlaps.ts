import { apartMs, compare, later } from "../journals/nanoseconds.js";
import { type Tenure, certainEnd, certainStart, excludes } from "../journals/tenures.js";
import { type Violation, nameOf, violationsMax } from "./violation.js";

export interface Overlaps {
  readonly violations: Violation[];
  /** Pairs whose outermost stamps overlap, which proves nothing. */
  readonly inconclusive: number;
}

/** The certain intervals of two tenures of one resource must not overlap, unless both are shared. */
export function findOverlaps(tenures: readonly Tenure[]): Overlaps {
  const violations: Violation[] = [];
  let inconclusive = 0;
  let running: Tenure[] = [];
  for (const tenure of tenures.toSorted((one, other) => compare(one.first.m1, other.first.m1))) {
    running = running.filter((before) => before.last.m2 > tenure.first.m1);
    for (const before of running) {
      if (!excludes(before, tenure)) continue;
      if (certainlyOverlap(before, tenure)) violations.push(overlapOf(before, tenure));
      else if (possiblyOverlap(before, tenure)) inconclusive += 1;
    }
    if (violations.length >= violationsMax) break;
    running.push(tenure);
  }
  return { violations, inconclusive };
}

/**
 * For a tenure with a single look, this requires that the other was held before and after that entire look.
 */
export function certainlyOverlap(one: Tenure, other: Tenure): boolean {
  return certainStart(one) < certainEnd(other) && certainStart(other) < certainEnd(one);
}

function possiblyOverlap(one: Tenure, other: Tenure): boolean {
  return one.first.m1 < other.last.m2 && other.first.m1 < one.last.m2;
}

function overlapOf(one: Tenure, other: Tenure): Violation {
  const from = later(certainStart(one), certainStart(other));
  const to = certainEnd(one) < certainEnd(other) ? certainEnd(one) : certainEnd(other);
  const length = to > from ? `for ${apartMs(from, to)} ms` : "in a single look";
  const text = `${nameOf(one)} and ${nameOf(other)} were both held at ${from}, ${length}`;
  return { rule: "overlap", resource: one.resource, text };
}
