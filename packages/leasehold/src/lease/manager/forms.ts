import { keptAlive } from "../../common/keep-alive.js";
import type { World } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import { tryAny, waitAny } from "../forms/counted.js";
import type { ExclusiveLeases, Held } from "../forms/exclusive.js";
import { waitInQueue } from "../forms/fair.js";
import { readerSlots, tryExclusive, tryShared, waitExclusive, waitShared } from "../forms/shared.js";
import { isSharedName, sharedMark, slotNames } from "../slots.js";
import type { AcquireOptions, TryAcquireOptions } from "../types.js";
import type { Cancellation, Provider } from "../provider.js";
import type { AcquireSpec } from "./acquire-spec.js";
import type { Acquisitions } from "./acquisitions.js";

/** The parts from which leases of the other forms are built. */
export interface FormParts {
  readonly acquisitions: Acquisitions;
  readonly provider: Provider;
  readonly world: World;
  /** Aborts when the participant closes. */
  readonly closed: AbortSignal;
}

/** Whether a call asks for something other than a plain exclusive lease. */
export function asksForForm(resource: string, options: AcquireOptions): boolean {
  const { limit, mode, fair } = options;
  return isSharedName(resource) || limit !== undefined || mode !== undefined || fair !== undefined;
}

/** As `tryAcquire`. */
export async function tryForm(
  parts: FormParts,
  spec: AcquireSpec,
  options: TryAcquireOptions,
): Promise<Held | undefined> {
  const form = formOf(parts, spec, options);
  return keptAlive(parts.world.keepAlive, () => form.try(spec.signal));
}

/** As `acquire`. */
export async function acquireForm(
  parts: FormParts,
  spec: AcquireSpec,
  options: AcquireOptions,
  waitMs: number,
): Promise<Held> {
  const form = formOf(parts, spec, options);
  const enterQueue = isFair(parts, options, waitMs)
    ? parts.provider.enterQueue?.bind(parts.provider)
    : undefined;
  return keptAlive(parts.world.keepAlive, async () => {
    if (enterQueue !== undefined) {
      const { resource, ttlMs } = spec;
      const queue = {
        world: parts.world,
        resource,
        closed: parts.closed,
        enter: (timeoutMs: number, cancellation: Cancellation) =>
          enterQueue(resource, ttlMs, timeoutMs, cancellation),
      };
      return waitInQueue(queue, waitMs, spec.signal, form.wait);
    }
    if (waitMs > 0) return form.wait(waitMs, spec.signal);
    const lease = await form.try(spec.signal);
    if (lease !== undefined) return lease;
    throw new LeaseholdError("LEASE_HELD", `others hold ${JSON.stringify(spec.resource)}`);
  });
}

/**
 * Whether the call waits in the ground's queue. A ground without queues has its own order, for all callers.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `UNSUPPORTED`
 */
function isFair({ provider }: FormParts, { fair }: AcquireOptions, waitMs: number): boolean {
  if (fair !== undefined && typeof fair !== "boolean")
    throw new LeaseholdError("INVALID_CONFIG", `fair: true or false, not ${JSON.stringify(fair)}`);
  if (fair !== true) return false;
  if (waitMs === 0)
    throw new LeaseholdError("INVALID_CONFIG", "fair needs a wait: it can't be combined with wait: 0");
  if (provider.guarantees.fair === "none")
    throw new LeaseholdError("UNSUPPORTED", "this ground keeps no order of arrival: wait without fair");
  return true;
}

/** How leases of the requested form are acquired. */
interface Form {
  try(signal: AbortSignal | undefined): Promise<Held | undefined>;
  wait(waitMs: number, signal: AbortSignal | undefined): Promise<Held>;
}

/** @throws LeaseholdError `INVALID_CONFIG`, `INVALID_NAME` */
function formOf(parts: FormParts, spec: AcquireSpec, { limit, mode }: TryAcquireOptions): Form {
  const { resource } = spec;
  checkForm(resource, limit, mode);
  if (isSharedName(resource)) return mode === "shared" ? reader(parts, spec) : writer(parts, spec);
  const own = exclusive(parts, spec);
  if (limit === undefined) {
    return {
      try: (signal) => own.try(resource, signal),
      wait: (waitMs, signal) => own.wait(resource, waitMs, signal),
    };
  }
  const slots = slotNames(resource, limit);
  return {
    try: (signal) => tryAny(own, slots, signal),
    wait: (waitMs, signal) => waitAny(own, slots, waitMs, signal),
  };
}

/**
 * MUST refuse a mode for any other name, because callers without a mode would ignore the readers of such a
 * name.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `INVALID_NAME`
 */
function checkForm(resource: string, limit: unknown, mode: unknown): void {
  const isShared = isSharedName(resource);
  if (limit !== undefined && (mode !== undefined || isShared))
    throw new LeaseholdError(
      "INVALID_CONFIG",
      "limit is for counted leases and can't be combined with readers and writers",
    );
  if (mode !== undefined && mode !== "shared" && mode !== "exclusive")
    throw new LeaseholdError("INVALID_CONFIG", `mode: "shared" or "exclusive", not ${JSON.stringify(mode)}`);
  if (isShared) {
    readerSlots(resource);
  } else if (mode !== undefined) {
    const name = JSON.stringify(resource + sharedMark);
    throw new LeaseholdError(
      "INVALID_NAME",
      `mode needs a name that ends with "${sharedMark}", so that every call of the name knows of its readers: ${name}`,
    );
  }
}

function reader(parts: FormParts, spec: AcquireSpec): Form {
  const { resource } = spec;
  const shared = { own: exclusive(parts, spec), passing: exclusive(parts, untilGivenBack(spec)) };
  return {
    try: (signal) => tryShared(shared, resource, signal),
    wait: (waitMs, signal) => waitShared(shared, resource, waitMs, signal),
  };
}

/** A writer's terms begin when the readers have gone; they must not end the gate while the writer waits. */
function writer(parts: FormParts, spec: AcquireSpec): Form {
  const { resource, data } = spec;
  const bare = untilGivenBack(spec);
  const shared = { own: exclusive(parts, { ...bare, data }), passing: exclusive(parts, bare) };
  return {
    try: (signal) => tryExclusive(shared, resource, spec, signal),
    wait: (waitMs, signal) => waitExclusive(shared, resource, spec, waitMs, signal),
  };
}

/** The terms of internal leases: renewed until released, without data. */
function untilGivenBack(spec: AcquireSpec): AcquireSpec {
  return { ...spec, data: undefined, autoRenew: true, maxHoldMs: Infinity };
}

function exclusive({ acquisitions, provider, world }: FormParts, spec: AcquireSpec): ExclusiveLeases {
  return {
    world,
    ttlMs: spec.ttlMs,
    try: (resource, signal) => acquisitions.try({ ...spec, resource, signal }),
    wait: (resource, waitMs, signal) => acquisitions.wait({ ...spec, resource, signal }, waitMs),
    query: (resource, timeoutMs) => provider.query(resource, timeoutMs),
  };
}
