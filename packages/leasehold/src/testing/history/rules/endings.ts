import { apartMs } from "../journals/nanoseconds.js";
import type { Tenure } from "../journals/tenures.js";
import { type Violation, nameOf } from "./violation.js";

/** A lease that was released, or found lost, is over for good. */
export function findFalseEndings(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  for (const tenure of tenures) {
    const { resource, last, releasedAt, gone } = tenure;
    if (releasedAt !== undefined && last.m1 > releasedAt) {
      const text = `${nameOf(tenure)} was found held ${apartMs(releasedAt, last.m1)} ms after its release`;
      violations.push({ rule: "held-after-release", resource, text });
    }
    if (gone !== undefined && last.m1 > gone.m2) {
      const text = `${nameOf(tenure)} was found held ${apartMs(gone.m2, last.m1)} ms after it was found lost`;
      violations.push({ rule: "reopened", resource, text });
    }
  }
  return violations;
}
