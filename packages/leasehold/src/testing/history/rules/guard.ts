import { getOrInsert } from "../../../common/maps.js";
import type { Decision } from "../journals/format.js";
import type { Violation } from "./violation.js";
import { violationsMax } from "./violation.js";

interface Guarded {
  /** All decisions of a resource must be in one journal; otherwise their order would be unknown. */
  readonly source: string;
  order: number;
  /** The greatest accepted token of all tenures, and that of tenures that are not shared. */
  greatest: bigint | undefined;
  greatestAlone: bigint | undefined;
}

/**
 * Checks decisions of guarded resources against the rule for fencing tokens: a token is refused if and only
 * if it is smaller than the greatest accepted one. A shared tenure's token is compared only with those of
 * exclusive ones, because shared ones overlap in any order. Decisions are judged while they are read, because
 * there may be very many.
 */
export class GuardLog {
  readonly #resources = new Map<string, Guarded>();
  readonly violations: Violation[] = [];
  accepted = 0;
  refused = 0;

  /** Returns the reason if the line is invalid. */
  add(decision: Decision, source: string): string | undefined {
    const { event, resource, token, order, mode } = decision;
    const guarded = getOrInsert(this.#resources, resource, () => ({
      source,
      order: -1,
      greatest: undefined,
      greatestAlone: undefined,
    }));
    if (guarded.source !== source) return `decisions of ${resource} are in ${guarded.source} too`;
    if (order <= guarded.order)
      return `out of order: decision ${order} of ${resource} comes after decision ${guarded.order}`;
    guarded.order = order;
    this[event] += 1;
    const greatest = mode === "shared" ? guarded.greatestAlone : guarded.greatest;
    const mayPass = greatest === undefined || token >= greatest;
    if (event === "accepted") {
      if (!mayPass) this.#accuse(decision, `after token ${greatest}`);
      else if (guarded.greatest === undefined || token > guarded.greatest) guarded.greatest = token;
      if (mayPass && mode !== "shared") guarded.greatestAlone = token;
    } else if (mayPass) {
      this.#accuse(decision, `although no greater one had been accepted`);
    }
    return undefined;
  }

  #accuse({ event, resource, token, order }: Decision, why: string): void {
    if (this.violations.length >= violationsMax) return;
    const rule = event === "accepted" ? "accepted-order" : "refusal-unexplained";
    const text = `${resource} ${event} token ${token} in decision ${order} ${why}`;
    this.violations.push({ rule, resource, text });
  }
}
