import { type Tenure, certainEnd, certainStart } from "../journals/tenures.js";
import { type Rule, type Violation, nameOf } from "./violation.js";

/**
 * Tokens of one resource rise and are never repeated. Expects the tenures in the order of their certain
 * starts.
 */
export function findTokenFaults(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  const byToken = new Map<bigint, Tenure>();
  let greatest: Tenure | undefined;
  const accuse = (rule: Rule, { resource }: Tenure, text: string): void =>
    void violations.push({ rule, resource, text });
  for (const tenure of tenures) {
    const { token } = tenure;
    const twin = byToken.get(token);
    if (twin !== undefined)
      accuse("token-repeated", tenure, `${nameOf(tenure)} has the token of ${nameOf(twin)}`);
    else if (greatest !== undefined && token < greatest.token && wasBefore(greatest, tenure))
      accuse("token-order", tenure, `${nameOf(tenure)} began after ${nameOf(greatest)}`);
    byToken.set(token, tenure);
    if (greatest === undefined || token > greatest.token) greatest = tenure;
  }
  return violations;
}

/**
 * If the two exclude each other, the first was before the second. A process that was stopped in its first
 * look has an uncertain start, so their order in the list alone proves nothing.
 */
function wasBefore(one: Tenure, other: Tenure): boolean {
  return certainStart(one) <= certainEnd(other);
}
