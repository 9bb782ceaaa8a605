import { getOrInsert } from "../../../common/maps.js";
import type { Decision } from "../journals/format.js";
import type { Violation } from "./violation.js";
import { violationsMax } from "./violation.js";

interface Guarded {
  /** Its decisions are in one journal, or their order would be unknown. */
  readonly source: string;
  order: number;
  greatest: bigint | undefined;
}

/**
 * What guarded resources decided, held against the rule of a fencing token: nothing smaller than the greatest
 * that was accepted passes, and nothing else is refused. It judges as it reads, because there may be very
 * many.
 */
export class GuardLog {
  readonly #resources = new Map<string, Guarded>();
  readonly violations: Violation[] = [];
  accepted = 0;
  refused = 0;

  /** Says what is wrong with the line itself, if anything is. */
  add(decision: Decision, source: string): string | undefined {
    const { event, resource, token, order } = decision;
    const guarded = getOrInsert(this.#resources, resource, () => ({
      source,
      order: -1,
      greatest: undefined,
    }));
    if (guarded.source !== source) return `decisions of ${resource} are in ${guarded.source} too`;
    if (order <= guarded.order)
      return `out of order: decision ${order} of ${resource} stands after decision ${guarded.order}`;
    guarded.order = order;
    this[event] += 1;
    const mayPass = guarded.greatest === undefined || token >= guarded.greatest;
    if (event === "accepted") {
      if (mayPass) guarded.greatest = token;
      else this.#accuse(decision, `after token ${guarded.greatest}`);
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
