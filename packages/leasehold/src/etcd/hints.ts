import { LeaseholdError } from "../lease/errors.js";
import { dataField } from "../lease/tenure-data.js";
import type { HolderHint } from "../lease/types.js";
import type { CallLimits, CoreClient, Entry } from "./core-client.js";
import { decodeRecord, tokenOf } from "./record.js";

/**
 * Converts a key to the form that programs see. Without `lifeMs`, the remaining time is assumed to be the
 * granted TTL.
 */
export function hintOf(entry: Entry, lifeMs?: number): HolderHint {
  const record = decodeRecord(entry.value);
  const common = { state: "held", confirmed: true, token: tokenOf(entry, record) } as const;
  if (record === undefined) return { ...common, holder: "unknown (not written by Leasehold)" };
  const { holder, label, seconds, data } = record;
  return {
    ...common,
    holder,
    remainingMs: Math.min(1_000 * seconds, lifeMs ?? Infinity),
    ...(label !== "" && { label }),
    ...dataField(data),
  };
}

/**
 * An upper bound of the remaining time of the key's lease, if it is not refreshed; undefined if the core does
 * not answer.
 */
export async function lifeMsMax(
  core: CoreClient,
  entry: Entry,
  limits: CallLimits,
): Promise<number | undefined> {
  if (entry.leaseId === 0n) return undefined;
  try {
    const { seconds } = await core.leaseLife(entry.leaseId, limits);
    // The core rounds down, by almost a second.
    return 1_000 * (Math.max(0, seconds) + 1);
  } catch (error) {
    // A missing remaining time is no reason to fail.
    if (error instanceof LeaseholdError) return undefined;
    throw error;
  }
}
