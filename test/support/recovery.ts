import {
  type FleaseSettingsInput,
  fleaseSettings,
} from "../../packages/leasehold/src/flease/protocol/settings.js";

/** How long a member's vote does not count after its start, ms: until the slower of its clocks says so (section 3.7). */
export function recoveryOf(options: Omit<FleaseSettingsInput, "members">): number {
  const { waitWallMs, waitRateMs } = fleaseSettings({ members: ["a", "b", "c"], ...options });
  return Math.max(waitWallMs, waitRateMs);
}
