import { shortTime } from "leasehold/cli";

/** A figure that moves should not change its shape: tenths below a second, too. */
export function tenths(ms: number): string {
  return ms < 1_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)} s` : shortTime(ms);
}
