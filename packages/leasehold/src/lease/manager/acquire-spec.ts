import { formatDuration, parseDuration } from "../duration.js";
import { LeaseholdError } from "../errors.js";
import type { HeldLeaseOptions } from "./lease-terms.js";
import { type CallWithOptions, checkOptions } from "../option-names.js";
import { refuseSlotName } from "../slots.js";
import type { CallTrace } from "./call-trace.js";
import type { Handle } from "../handle.js";
import { checkResourceName } from "../resource-name.js";
import { dataText } from "../tenure-data.js";
import type { AcquireOptions, Guarantees, TenureOptions } from "../types.js";

const waitMsDefault = 60_000;

const endless = { infinity: true };

/** A caller's validated options. */
export interface AcquireSpec extends HeldLeaseOptions {
  readonly resource: string;
  readonly signal: AbortSignal | undefined;
  /** JSON. */
  readonly data: string | undefined;
  /** The detached lease to attach. */
  readonly handle?: Handle;
  /** Absent unless the call is traced. */
  readonly trace?: CallTrace;
}

export function waitMsOf(options: Pick<AcquireOptions, "wait">): number {
  return parseDuration(options.wait ?? waitMsDefault, "wait", endless);
}

/** @throws LeaseholdError for anything that the ground does not support; nothing has been sent then. */
export function acquireSpec(
  guarantees: Guarantees,
  call: CallWithOptions,
  resource: string,
  options: TenureOptions,
): AcquireSpec {
  checkResourceName(resource);
  // The handle of a slot's lease contains the slot's name.
  if (call !== "attach") refuseSlotName(resource);
  checkOptions(call, options);
  const { ttlMinMs, ttlMaxMs } = guarantees;
  const ttlMs = options.ttl === undefined ? ttlMaxMs : parseDuration(options.ttl, "ttl");
  if (ttlMs < ttlMinMs || ttlMs > ttlMaxMs) {
    throw new LeaseholdError(
      "TTL_OUT_OF_RANGE",
      `ttl ${formatDuration(ttlMs)} is outside ${formatDuration(ttlMinMs)} to ${formatDuration(ttlMaxMs)}`,
    );
  }
  const maxHoldMs = parseDuration(options.maxHold ?? Infinity, "maxHold", endless);
  if (maxHoldMs === 0) throw new LeaseholdError("INVALID_DURATION", "maxHold: must be more than 0");
  const data = options.data === undefined ? undefined : dataText(options.data);
  if (data !== undefined && !guarantees.data)
    throw new LeaseholdError("UNSUPPORTED", "on this ground a tenure carries no data");
  return { resource, ttlMs, maxHoldMs, autoRenew: options.autoRenew ?? true, signal: options.signal, data };
}
