import {
  type FleaseSettingsInput,
  fleaseSettings,
} from "../../packages/leasehold/src/flease/protocol/settings.js";

/**
 * How long a member's vote doesn't count after its start, ms: until both of its clocks have reached the end
 * of the wait (section 3.7).
 */
export function recoveryOf(options: Omit<FleaseSettingsInput, "members">): number {
  const { waitWallMs, waitRateMs } = fleaseSettings({ members: ["a", "b", "c"], ...options });
  return Math.max(waitWallMs, waitRateMs);
}
