import { shortTime } from "leasehold/cli";

/** Always with one decimal, also below a second, so that a changing figure keeps its shape. */
export function tenths(ms: number): string {
  return ms < 1_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : shortTime(ms);
}
