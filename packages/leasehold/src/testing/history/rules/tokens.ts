import { type Tenure, certainEnd, certainStart } from "../journals/tenures.js";
import { type Rule, type Violation, nameOf } from "./violation.js";

/**
 * Tokens of one resource are never repeated, and rise between tenures that exclude each other. Expects the
 * tenures in the order of their certain starts.
 */
export function findTokenFaults(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  const byToken = new Map<bigint, Tenure>();
  let greatest: Tenure | undefined;
  let greatestAlone: Tenure | undefined;
  const accuse = (rule: Rule, { resource }: Tenure, text: string): void =>
    void violations.push({ rule, resource, text });
  for (const tenure of tenures) {
    const { token } = tenure;
    const isShared = tenure.mode === "shared";
    // Shared tenures may begin in any order.
    const before = isShared ? greatestAlone : greatest;
    const twin = byToken.get(token);
    if (twin !== undefined)
      accuse("token-repeated", tenure, `${nameOf(tenure)} has the token of ${nameOf(twin)}`);
    else if (before !== undefined && token < before.token && wasBefore(before, tenure))
      accuse("token-order", tenure, `${nameOf(tenure)} began after ${nameOf(before)}`);
    byToken.set(token, tenure);
    if (greatest === undefined || token > greatest.token) greatest = tenure;
    if (!isShared && (greatestAlone === undefined || token > greatestAlone.token)) greatestAlone = tenure;
  }
  return violations;
}

/**
 * Whether the first of two tenures that exclude each other came before the second. If a process was stopped
 * during its first look, its start is uncertain, so the order in the list alone proves nothing.
 */
function wasBefore(one: Tenure, other: Tenure): boolean {
  return certainStart(one) <= certainEnd(other);
}
