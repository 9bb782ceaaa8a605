import { keptAlive } from "../../common/keep-alive.js";
import type { World } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import { tryAny, waitAny } from "../forms/counted.js";
import type { ExclusiveLeases, Held } from "../forms/exclusive.js";
import { waitInLine } from "../forms/fair.js";
import { readerSlots, tryExclusive, tryShared, waitExclusive, waitShared } from "../forms/shared.js";
import { slotNames } from "../slots.js";
import type { AcquireOptions, TryAcquireOptions } from "../types.js";
import type { Cancellation, Provider } from "../provider.js";
import type { AcquireSpec } from "./acquire-spec.js";
import type { OwnReaders } from "./own-readers.js";
import type { Acquisitions } from "./acquisitions.js";

/** What leases of other forms than the exclusive are made with. */
export interface FormParts {
  readonly acquisitions: Acquisitions;
  readonly provider: Provider;
  readonly world: World;
  /** Aborts when the participant closes. */
  readonly closed: AbortSignal;
  readonly ownReaders: OwnReaders;
}

/** Whether options ask for another form than an exclusive lease. */
export function asksForForm(options: AcquireOptions): boolean {
  return options.limit !== undefined || options.mode !== undefined || options.fair !== undefined;
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
  const enterLine = isFair(parts, options, waitMs)
    ? parts.provider.enterLine?.bind(parts.provider)
    : undefined;
  return keptAlive(parts.world.keepAlive, async () => {
    if (enterLine !== undefined) {
      const { resource, ttlMs } = spec;
      const line = {
        world: parts.world,
        resource,
        closed: parts.closed,
        enter: (timeoutMs: number, cancellation: Cancellation) =>
          enterLine(resource, ttlMs, timeoutMs, cancellation),
      };
      return waitInLine(line, waitMs, spec.signal, form.wait);
    }
    if (waitMs > 0) return form.wait(waitMs, spec.signal);
    const lease = await form.try(spec.signal);
    if (lease !== undefined) return lease;
    throw new LeaseholdError("LEASE_HELD", `others hold ${JSON.stringify(spec.resource)}`);
  });
}

/**
 * Where the ground has no lines it has an order of its own, in which all wait.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `UNSUPPORTED`
 */
function isFair({ provider }: FormParts, { fair }: AcquireOptions, waitMs: number): boolean {
  if (fair !== undefined && typeof fair !== "boolean")
    throw new LeaseholdError("INVALID_CONFIG", `fair: true or false, not ${JSON.stringify(fair)}`);
  if (fair !== true) return false;
  if (waitMs === 0)
    throw new LeaseholdError("INVALID_CONFIG", "fair is about those who wait, and wait: 0 does not");
  if (provider.guarantees.fair === "none")
    throw new LeaseholdError("UNSUPPORTED", "this ground cannot say who came first: wait without fair");
  return true;
}

/** How a lease of some form is had. */
interface Form {
  try(signal: AbortSignal | undefined): Promise<Held | undefined>;
  wait(waitMs: number, signal: AbortSignal | undefined): Promise<Held>;
}

/** @throws LeaseholdError `INVALID_CONFIG`, `INVALID_NAME` */
function formOf(parts: FormParts, spec: AcquireSpec, { limit, mode }: TryAcquireOptions): Form {
  const own = exclusive(parts, spec);
  const { resource } = spec;
  if (mode === undefined && limit === undefined) {
    return {
      try: (signal) => own.try(resource, signal),
      wait: (waitMs, signal) => own.wait(resource, waitMs, signal),
    };
  }
  if (mode === undefined) {
    const slots = slotNames(resource, limit!);
    return {
      try: (signal) => tryAny(own, slots, signal),
      wait: (waitMs, signal) => waitAny(own, slots, waitMs, signal),
    };
  }
  if (limit !== undefined)
    throw new LeaseholdError("INVALID_CONFIG", "limit and mode are two forms of leases: give one of them");
  if (mode !== "shared" && mode !== "exclusive")
    throw new LeaseholdError("INVALID_CONFIG", `mode: "shared" or "exclusive", not ${JSON.stringify(mode)}`);
  readerSlots(resource);
  const bare = { ...spec, data: undefined, autoRenew: true, maxHoldMs: Infinity };
  const shared = { own, passing: exclusive(parts, bare) };
  if (mode === "exclusive") {
    return {
      try: (signal) => tryExclusive(shared, resource, signal),
      wait: (waitMs, signal) => waitExclusive(shared, resource, waitMs, signal),
    };
  }
  const noted = <R extends Held | undefined>(reader: R): R => {
    if (reader !== undefined) parts.ownReaders.add(reader);
    return reader;
  };
  return {
    try: async (signal) => noted(await tryShared(shared, resource, signal)),
    wait: async (waitMs, signal) => noted(await waitShared(shared, resource, waitMs, signal)),
  };
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
