import { compare } from "../journals/nanoseconds.js";
import type { Tenure } from "../journals/tenures.js";
import { type Violation, nameOf } from "./violation.js";

/**
 * What the writers alone prove of the guarded resource: no token was accepted in an operation that began
 * after the answer to one with a greater token. It needs no journal of the resource.
 */
export function findLateAcceptances(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  /** Whose acceptance was answered first, of those with greater tokens. */
  let first: Tenure | undefined;
  for (const tenure of tenures.toSorted((one, other) => compare(other.token, one.token))) {
    const { resource, acceptedFirst, acceptedLast } = tenure;
    if (acceptedFirst === undefined || acceptedLast === undefined) continue;
    const before = first?.acceptedFirst;
    if (first !== undefined && before !== undefined && first.token > tenure.token && acceptedLast > before) {
      const text = `an operation of ${nameOf(tenure)} was accepted after one of ${nameOf(first)}`;
      violations.push({ rule: "accepted-order", resource, text });
    }
    if (before === undefined || acceptedFirst < before) first = tenure;
  }
  return violations;
}
