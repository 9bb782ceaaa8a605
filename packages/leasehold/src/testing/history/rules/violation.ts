import type { TenureId } from "../journals/format.js";

/** The rules of a history. `docs/internals/histories.md` has the same list. */
export type Rule =
  /** Two tenures of one resource were held at the same instant. */
  | "overlap"
  /** The held slots of a counted lease exceed the greatest limit among their holders. */
  | "too-many"
  /** A later tenure has a smaller token than an earlier one. */
  | "token-order"
  /** Two tenures have the same token. */
  | "token-repeated"
  /** A lease was found held after its own holder had begun to release it. */
  | "held-after-release"
  /** A process that had been stopped found its lease held although another had taken over meanwhile. */
  | "held-after-pause"
  /** A lease that had been found lost was found held again. */
  | "reopened"
  /** The guarded resource accepted a smaller token after a greater one. */
  | "accepted-order"
  /** The guarded resource refused a token without a reason that the journals show. */
  | "refusal-unexplained";

export interface Violation {
  readonly rule: Rule;
  readonly resource: string;
  readonly text: string;
}

/**
 * The maximum number of reported violations: a history that is wrong everywhere need not be listed
 * completely.
 */
export const violationsMax = 1_000;

/** A tenure, for messages. */
export function nameOf({ resource, incarnation, pid, token }: TenureId): string {
  return `${resource} by ${incarnation} (process ${pid}) with token ${token}`;
}
