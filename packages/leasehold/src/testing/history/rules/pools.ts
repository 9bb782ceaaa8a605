import { greatest } from "../../../common/lists.js";
import { getOrInsert } from "../../../common/maps.js";
import { type Tenure, byCertainStart, certainEnd, certainStart } from "../journals/tenures.js";
import { certainlyOverlap } from "./overlaps.js";
import { type Violation, nameOf, violationsMax } from "./violation.js";

/**
 * The number of concurrent holders of a counted lease is at most the greatest limit among them, because each
 * has its own slot, with a number below its own limit. Expects the tenures of all resources.
 */
export function findOvercrowding(tenures: Iterable<Tenure>): Violation[] {
  const pools = new Map<string, Tenure[]>();
  for (const tenure of tenures)
    if (tenure.pool !== undefined) getOrInsert(pools, tenure.pool, () => []).push(tenure);
  const violations: Violation[] = [];
  for (const [pool, members] of pools) {
    let running: Tenure[] = [];
    for (const tenure of members.sort(byCertainStart)) {
      running = running.filter((before) => certainEnd(before) > certainStart(tenure));
      // All of them include the start of this one or, for a tenure with a single look, that entire look.
      const atOnce = [...running.filter((before) => certainlyOverlap(before, tenure)), tenure];
      const limit = greatest(atOnce.map((one) => one.limit ?? 1));
      if (atOnce.length > limit) {
        const text = `${atOnce.length} of at most ${limit} were held at ${certainStart(tenure)}: `;
        violations.push({ rule: "too-many", resource: pool, text: text + atOnce.map(nameOf).join(", ") });
      }
      if (violations.length >= violationsMax) return violations;
      running.push(tenure);
    }
  }
  return violations;
}
