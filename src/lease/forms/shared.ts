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
import { within } from "./within.js";

/**
 * Shared leases: many readers or one writer, made of exclusive leases on any ground. The lease on the name
 * itself is the *gate*. A writer takes the gate, then has each reader's slot once, and holds the gate as its
 * lease. A reader takes the gate, then a slot, looks whether it still has the gate, gives the gate back and
 * holds the slot as its lease; its token is that of its tenure of the gate.
 *
 * Why no reader holds beside a writer: at the moment when the reader looks it has both gate and slot. A
 * writer whose gate is later asks for that slot after this moment, so it gets it only when the reader's lease
 * on it is over. A reader whose gate is later has it after the writer's lease is over. That is the exclusion
 * of single leases and nothing else: no clock is compared here. A reader that was stopped between gate and
 * slot may get the slot late, and finds by its look that the gate has gone.
 *
 * All tokens are of tenures of the gate, so they rise in the order in which readers and writers came. A
 * writer that waits has the gate, so no reader goes past it; a reader that crashes is in the way until its
 * slot runs out.
 */

/** Readers at a time: a writer has each of their slots once, so this is what a writer costs. */
export const readersMax = 16;

/** A reader has the gate for some round trips only: so long waits one that wants a single answer. */
const passagesPerTtl = 50;
const passageMsMin = 100;

/** The pause of a reader that found no slot free, ms: random, its bound doubles. */
const pauseMsBase = 50;
const pauseMsMax = 2_000;

/** What shared leases are made with. */
export interface SharedParts {
  /**
   * The exclusive leases that are handed out: a reader's slot with what the caller wants of its tenure, a
   * writer's gate without a bound.
   */
  readonly own: ExclusiveLeases;
  /** Those that are taken on the way and given back. */
  readonly passing: ExclusiveLeases;
}

/** @throws LeaseholdError `INVALID_NAME` when the names of the readers' slots would be too long */
export function readerSlots(name: string): string[] {
  return slotNames(name, readersMax + 1).slice(1);
}

/** One answer to a reader: `undefined` when a writer, or the greatest number of readers, is in. */
export async function tryShared(
  { own, passing }: SharedParts,
  name: string,
  signal: AbortSignal | undefined,
): Promise<Held | undefined> {
  let gate = await passing.try(name, signal);
  if (gate === undefined) {
    // It may be a reader on its way in.
    const passageMs = Math.max(passageMsMin, passing.ttlMs / passagesPerTtl);
    gate = await passing.wait(name, passageMs, signal).catch((error: unknown) => {
      signal?.throwIfAborted();
      if (!mayPass(error)) throw error;
      return undefined;
    });
  }
  return gate === undefined ? undefined : enter(own, gate, signal);
}

/** Waits until no writer is in, or waits, and a slot is free. */
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
    const entering = within(timers, boundMs, signal, (bounded) => enter(own, gate, bounded));
    const lease = await entering.catch((error: unknown) => void (failure = error));
    if (lease !== undefined) return lease;
    signal?.throwIfAborted();
    if (failure !== undefined && !mayPass(failure)) throw failure;
    if (leftMs() === 0) throw failure ?? tooManyReaders(name, waitMs);
    const pauseMs = Math.min(leftMs(), backOffMs(random, failures, pauseMsBase, pauseMsMax));
    await within(timers, pauseMs, signal, aborted).catch(() => undefined);
  }
}

/**
 * By the gate's lease, which it gives back: `undefined` without a free slot, or when the gate was lost
 * meanwhile.
 */
async function enter(
  own: ExclusiveLeases,
  gate: Held,
  signal: AbortSignal | undefined,
): Promise<SharedLease | undefined> {
  try {
    const slot = await tryAny(own, readerSlots(gate.resource), signal);
    if (slot === undefined) return undefined;
    // MUST look when it has the slot: what it gets later a writer may have had, and found free.
    if (gate.remaining() > 0) return new SharedLease(gate, slot);
    await slot.release();
    return undefined;
  } finally {
    void gate.release();
  }
}

/** One answer to a writer. */
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
    throw new LeaseholdError("NO_QUORUM", "the gate was lost before all slots of readers were seen free");
  });
}

/**
 * Waits for the gate, and then until the readers who are in have gone. One that loses the gate meanwhile
 * begins anew: nothing was handed out, so nothing was lost.
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
 * Has each reader's slot once, each after the gate was had; then the gate is the writer's lease, and its
 * terms begin: however long the readers stayed, none of that is of the writer's `maxHold` or `ttl`.
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
    return gate;
  } catch (error) {
    stop.abort(error);
    // Those who come in by the gate find the slots free.
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
