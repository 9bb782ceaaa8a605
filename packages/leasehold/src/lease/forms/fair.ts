import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { backOffMs } from "../../common/back-off.js";
import type { World } from "../../common/ports.js";
import { formatDuration } from "../duration.js";
import { LeaseholdError } from "../errors.js";
import type { Cancellation, Place } from "../provider.js";
import type { Held } from "./exclusive.js";
import { withTimeout } from "./with-timeout.js";

/**
 * Waiting in order: each caller has a place in the ground's queue for the name. The first in the queue
 * acquires the lease, in whichever form it wants. So fair waiters never contend with each other. Exclusion
 * does not depend on the queue, so a caller that is unsure of its place re-enters at the end.
 */

/** Base and bound of the random pause before another attempt to enter, ms. The bound doubles each time. */
const pauseMsBase = 50;
const pauseMsMax = 2_000;

/** Timeout of one attempt to enter, ms. Without it, a caller with a long wait would make only one attempt. */
const enterMsMax = 5_000;

/** How callers enter the queue for one name. */
export interface FairQueue {
  readonly world: World;
  readonly resource: string;
  /** Aborts when the participant closes. */
  readonly closed: AbortSignal;
  enter(timeoutMs: number, cancellation: Cancellation): Promise<Place>;
}

/** @param take acquires the lease once the caller is first in the queue, within the remaining time */
export async function waitInQueue(
  queue: FairQueue,
  waitMs: number,
  signal: AbortSignal | undefined,
  take: Take,
): Promise<Held> {
  queue.closed.throwIfAborted();
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  const close = () => stop.abort(queue.closed.reason);
  watchAbort(signal, abort);
  watchAbort(queue.closed, close);
  try {
    return await waitUntilStopped(queue, waitMs, stop.signal, take);
  } finally {
    unwatchAbort(signal, abort);
    unwatchAbort(queue.closed, close);
  }
}

type Take = (waitMs: number, signal: AbortSignal) => Promise<Held>;

async function waitUntilStopped(
  queue: FairQueue,
  waitMs: number,
  signal: AbortSignal,
  take: Take,
): Promise<Held> {
  const { clock, timers, random } = queue.world;
  const deadlineMs = clock.monotonicMs() + waitMs;
  const leftMs = () => Math.max(0, deadlineMs - clock.monotonicMs());
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    const place = await entered(queue, Math.min(enterMsMax, leftMs()), signal).catch((error: unknown) => {
      signal.throwIfAborted();
      const mayPass = error instanceof LeaseholdError && passing.has(error.code);
      if (!mayPass || leftMs() === 0) throw error;
    });
    if (place !== undefined) {
      let lease: Held | undefined;
      try {
        lease = await served(queue, place, leftMs(), signal, take);
        failures = 0;
      } finally {
        const left = place.leave();
        lease?.releaseWith(left);
      }
      if (lease !== undefined) return lease;
    }
    if (leftMs() === 0) throw tooLate(queue.resource, waitMs);
    const pauseMs = Math.min(leftMs(), backOffMs(random, failures, pauseMsBase, pauseMsMax));
    await withTimeout(timers, pauseMs, signal, aborted).catch(() => undefined);
  }
}

/** Errors that may be transient. */
const passing: ReadonlySet<string> = new Set(["NO_QUORUM", "TIMEOUT", "OVERLOADED", "UNREACHABLE"]);

/** Enters the queue. The place is given back if the caller has gone meanwhile. */
async function entered(queue: FairQueue, timeoutMs: number, signal: AbortSignal): Promise<Place> {
  const cancellation: Cancellation & { cancelled: boolean } = { cancelled: false, onCancel: undefined };
  const cancel = () => {
    cancellation.cancelled = true;
    cancellation.onCancel?.();
  };
  watchAbort(signal, cancel);
  try {
    return await queue.enter(timeoutMs, cancellation);
  } finally {
    unwatchAbort(signal, cancel);
  }
}

/** Waits until the place is first, and then acquires. `undefined` if the place is lost before that. */
async function served(
  { world, resource }: FairQueue,
  place: Place,
  waitMs: number,
  signal: AbortSignal,
  take: Take,
): Promise<Held | undefined> {
  const { clock, timers } = world;
  const deadlineMs = clock.monotonicMs() + waitMs;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  const lapse = () => stop.abort(place.gone.reason);
  const late = () => stop.abort(tooLate(resource, waitMs));
  const timer = waitMs < Infinity ? timers.after(waitMs, late) : undefined;
  watchAbort(signal, abort);
  watchAbort(place.gone, lapse);
  try {
    await Promise.race([place.first, aborted(stop.signal)]);
    timer?.cancel();
    return await take(Math.max(0, deadlineMs - clock.monotonicMs()), stop.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (place.gone.aborted && error === place.gone.reason) return undefined;
    throw error;
  } finally {
    timer?.cancel();
    unwatchAbort(signal, abort);
    unwatchAbort(place.gone, lapse);
  }
}

function tooLate(resource: string, waitMs: number): LeaseholdError {
  const name = JSON.stringify(resource);
  return new LeaseholdError(
    "TIMEOUT",
    `waited ${formatDuration(waitMs)} in the queue for ${name}, and others are still before this caller`,
  );
}

/** Rejects when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => watchAbort(signal, () => reject(signal.reason)));
}
