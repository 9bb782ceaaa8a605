import { compare } from "../journals/nanoseconds.js";
import type { Tenure } from "../journals/tenures.js";
import { type Violation, nameOf } from "./violation.js";

/**
 * Acceptances by the guarded resource that the writers' journals prove wrong: an operation must not be
 * accepted if it began after the answer to one with a greater token, unless both were shared. This rule needs
 * no journal of the resource.
 */
export function findLateAcceptances(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  /** Among the tenures with greater tokens, the one whose acceptance was answered first. */
  let first: Tenure | undefined;
  let firstAlone: Tenure | undefined;
  for (const tenure of tenures.toSorted((one, other) => compare(other.token, one.token))) {
    const { resource, acceptedFirst, acceptedLast } = tenure;
    if (acceptedFirst === undefined || acceptedLast === undefined) continue;
    const isShared = tenure.mode === "shared";
    const other = isShared ? firstAlone : first;
    const before = other?.acceptedFirst;
    if (other !== undefined && before !== undefined && other.token > tenure.token && acceptedLast > before) {
      const text = `an operation of ${nameOf(tenure)} was accepted after one of ${nameOf(other)}`;
      violations.push({ rule: "accepted-order", resource, text });
    }
    if (isEarlier(tenure, first)) first = tenure;
    if (!isShared && isEarlier(tenure, firstAlone)) firstAlone = tenure;
  }
  return violations;
}

function isEarlier({ acceptedFirst }: Tenure, first: Tenure | undefined): boolean {
  const before = first?.acceptedFirst;
  return before === undefined || (acceptedFirst !== undefined && acceptedFirst < before);
}
