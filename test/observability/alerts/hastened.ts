import { readFileSync } from "node:fs";
import { rules } from "../support.js";

/** The factor by which durations are shortened for tests: five minutes become ten seconds. */
export const hasteFactor = 30;

const secondsOf = { s: 1, m: 60, h: 3_600 } as const;

/**
 * The shipped rules, with each `for:` and each window (`[5m]`) divided by `factor`. Expressions, thresholds
 * and labels are unchanged.
 */
export function hastenedRules(factor: number): string {
  return readFileSync(rules, "utf8").replace(
    /(\bfor: |\[)(\d+)([smh])\b/g,
    (_, before: string, count: string, unit: keyof typeof secondsOf) =>
      `${before}${(Number(count) * secondsOf[unit]) / factor}s`,
  );
}
