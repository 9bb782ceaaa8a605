import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { backOffMs } from "../../common/back-off.js";
import { formatDuration } from "../duration.js";
import { LeaseholdError } from "../errors.js";
import { tryAny } from "./counted.js";
import type { ExclusiveLeases, Held } from "./exclusive.js";
import { SharedLease } from "./shared-lease.js";
import type { Upkeep } from "../provider.js";
import { mayPass } from "../retryable.js";
import { slotNames } from "../slots.js";
import { withTimeout } from "./with-timeout.js";

/**
 * Shared leases: many readers or one writer, built from exclusive leases on any ground. The lease on the name
 * itself is the *gate*. A writer takes the gate, then takes and releases each reader's slot once, and keeps
 * the gate as its lease. A reader takes the gate, then a slot, checks that it still has the gate, releases
 * the gate and keeps the slot as its lease; its token is that of its tenure of the gate.
 *
 * Why no reader and writer hold at the same time: at the moment of its check the reader has both the gate and
 * its slot. A writer that gets the gate later asks for that slot after this moment, so it gets the slot only
 * when the reader's lease on it is over. A reader that gets the gate later does so after the writer's lease
 * is over. The argument uses only the exclusion of single leases: no clocks are compared here. A reader that
 * was stopped between gate and slot may get the slot late; its check then finds that the gate is lost.
 *
 * All tokens come from tenures of the gate, so they rise in the order in which readers and writers got it. A
 * waiting writer has the gate, so no reader overtakes it; a reader that crashes blocks writers until its slot
 * expires.
 */

/**
 * The maximum number of concurrent readers. A writer takes each of their slots once, so this is the cost of a
 * writer.
 */
export const readersMax = 16;

/**
 * A reader has the gate for only a few round trips, so even a caller that doesn't wait is given this long to
 * get it.
 */
const passagesPerTtl = 50;
const passageMsMin = 100;

/**
 * Base and bound of the random pause of a reader that found no free slot, ms. The bound doubles each time.
 */
const pauseMsBase = 50;
const pauseMsMax = 2_000;

/** The exclusive leases from which shared ones are built. */
export interface SharedParts {
  /**
   * The leases that callers get: a reader's slot with the caller's terms, a writer's gate without a bound.
   */
  readonly own: ExclusiveLeases;
  /** The leases that are acquired as intermediate steps and released. */
  readonly passing: ExclusiveLeases;
}

/** @throws LeaseholdError `INVALID_NAME` when the names of the readers' slots would be too long */
export function readerSlots(name: string): string[] {
  return slotNames(name, readersMax + 1).slice(1);
}

/** One attempt by a reader: `undefined` while there is a writer or the maximum number of readers. */
export async function tryShared(
  { own, passing }: SharedParts,
  name: string,
  signal: AbortSignal | undefined,
): Promise<Held | undefined> {
  let gate = await passing.try(name, signal);
  if (gate === undefined) {
    // The gate's holder may be a reader that is about to release it.
    const passageMs = Math.max(passageMsMin, passing.ttlMs / passagesPerTtl);
    gate = await passing.wait(name, passageMs, signal).catch((error: unknown) => {
      signal?.throwIfAborted();
      if (!mayPass(error)) throw error;
      return undefined;
    });
  }
  return gate === undefined ? undefined : enter(own, gate, signal);
}

/** Waits until no writer holds or waits for the lease, and a slot is free. */
export async function waitShared(
  { own, passing }: SharedParts,
  name: string,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<Held> {
  const { clock, timers, random } = own.world;
  const deadlineMs = clock.monotonicMs() + waitMs;
  const leftMs = () => Math.max(0, deadlineMs - clock.monotonicMs());
  for (let failures = 0; ; failures += 1) {
    const gate = await passing.wait(name, leftMs(), signal);
    let failure: unknown;
    const boundMs = Math.min(own.ttlMs, Math.max(leftMs(), passageMsMin));
    const entering = withTimeout(timers, boundMs, signal, (bounded) => enter(own, gate, bounded));
    const lease = await entering.catch((error: unknown) => void (failure = error));
    if (lease !== undefined) return lease;
    signal?.throwIfAborted();
    if (failure !== undefined && !mayPass(failure)) throw failure;
    if (leftMs() === 0) throw failure ?? tooManyReaders(name, waitMs);
    const pauseMs = Math.min(leftMs(), backOffMs(random, failures, pauseMsBase, pauseMsMax));
    await withTimeout(timers, pauseMs, signal, aborted).catch(() => undefined);
  }
}

/**
 * Takes a slot while the gate is held, and releases the gate. `undefined` when no slot is free, or when the
 * gate was lost meanwhile.
 */
async function enter(
  own: ExclusiveLeases,
  gate: Held,
  signal: AbortSignal | undefined,
): Promise<SharedLease | undefined> {
  try {
    const slot = await tryAny(own, readerSlots(gate.resource), signal);
    // MUST check after it has the slot: a slot acquired later may be one that a writer has already found
    // free.
    if (slot !== undefined && gate.remaining() > 0) return new SharedLease(gate, slot);
    await slot?.release();
  } catch (error) {
    await gate.release();
    throw error;
  }
  await gate.release();
  return undefined;
}

/** One attempt by a writer. */
export async function tryExclusive(
  { own, passing }: SharedParts,
  name: string,
  terms: Upkeep,
  signal: AbortSignal | undefined,
): Promise<Held | undefined> {
  const gate = await own.try(name, signal);
  if (gate === undefined) return undefined;
  const held = new LeaseholdError("LEASE_HELD");
  const take = async (slot: string, stop: AbortSignal) => {
    const lease = await passing.try(slot, stop);
    if (lease === undefined) throw held;
    return lease;
  };
  return outlast(gate, terms, signal, take).catch((error: unknown) => {
    if (error === held) return undefined;
    signal?.throwIfAborted();
    if (gate.loss === undefined) throw error;
    throw new LeaseholdError("NO_QUORUM", "the gate was lost before all readers' slots were free");
  });
}

/**
 * Waits for the gate, and then until the present readers have gone. A writer that loses the gate meanwhile
 * starts again: the caller has no lease yet, so none was lost.
 */
export async function waitExclusive(
  { own, passing }: SharedParts,
  name: string,
  terms: Upkeep,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<Held> {
  const { clock } = own.world;
  const deadlineMs = clock.monotonicMs() + waitMs;
  const leftMs = () => Math.max(0, deadlineMs - clock.monotonicMs());
  for (;;) {
    const gate = await own.wait(name, leftMs(), signal);
    const take = (slot: string, stop: AbortSignal) => passing.wait(slot, leftMs(), stop);
    try {
      return await outlast(gate, terms, signal, take).catch((error: unknown) => {
        const isLate = error instanceof LeaseholdError && error.code === "TIMEOUT";
        throw isLate ? readersAreIn(name, waitMs, error) : error;
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (gate.loss === undefined) throw error;
    }
  }
}

/**
 * Takes and releases each reader's slot once, all of them while the gate is held. Then the gate becomes the
 * writer's lease, and its terms begin: the time spent waiting for readers counts towards neither `maxHold`
 * nor `ttl`.
 */
async function outlast(
  gate: Held,
  terms: Upkeep,
  signal: AbortSignal | undefined,
  take: (slot: string, stop: AbortSignal) => Promise<Held>,
): Promise<Held> {
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  const lost = () => stop.abort(gate.signal.reason);
  const gateSignal = gate.signal;
  watchAbort(signal, abort);
  watchAbort(gateSignal, lost);
  const given: Promise<void>[] = [];
  const taking = readerSlots(gate.resource).map(async (slot) => {
    const lease = await take(slot, stop.signal);
    given.push(lease.release());
  });
  try {
    await Promise.all(taking);
    await gate.keep(terms);
    signal?.throwIfAborted();
    gate.assertHeld();
    gate.releaseWith(Promise.all(given));
    return gate;
  } catch (error) {
    stop.abort(error);
    // The next owner of the gate MUST find the slots free.
    await Promise.allSettled(taking);
    await Promise.allSettled(given);
    await gate.release();
    throw error;
  } finally {
    unwatchAbort(signal, abort);
    unwatchAbort(gateSignal, lost);
  }
}

function readersAreIn(name: string, waitMs: number, cause: unknown): LeaseholdError {
  const readers = `readers still have ${JSON.stringify(name)}`;
  return new LeaseholdError("TIMEOUT", `waited ${formatDuration(waitMs)}, and ${readers}`, { cause });
}

function tooManyReaders(name: string, waitMs: number): LeaseholdError {
  const all = `${readersMax} readers still have ${JSON.stringify(name)}`;
  return new LeaseholdError("TIMEOUT", `waited ${formatDuration(waitMs)}, and ${all}`);
}

/** Rejects when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => watchAbort(signal, () => reject(signal.reason)));
}
