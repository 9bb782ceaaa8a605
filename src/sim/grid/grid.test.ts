import { expect, test } from "vitest";
import { withFaults } from "../../flease/planted-faults.js";
import { runGrid } from "./run.js";
function go(label: string, n: number, m?: Parameters<typeof runGrid>[1]) {
  const t = Date.now();
  const sum: Record<string, number> = {};
  const bad: unknown[] = [];
  for (let seed = 1; seed <= n; seed++) {
    const r = runGrid(seed, m);
    for (const [k, v] of Object.entries(r.counters)) sum[k] = (sum[k] ?? 0) + v;
    sum["events"] = (sum["events"] ?? 0) + r.events;
    if (r.violation) {
      bad.push([seed, r.violation.invariant, r.violation.text]);
      if (m || bad.length > 2) break;
    }
  }
  console.log(label, JSON.stringify(sum), bad.length, JSON.stringify(bad), Date.now() - t);
}
test("x", () => {
  go("clean", 100);
  go("early", 100, "replyBeforeWrite");
  go("stale", 100, "staleWriteWins");
  go("forget", 100, "forgottenCountsAtOnce");
  withFaults({ noSafetyPeriod: true }, () => go("noeps", 50));
  withFaults({ noFloor: true }, () => go("nofloor", 50));
}, 300000);
