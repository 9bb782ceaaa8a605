import { unlessAborted, unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import type { Random } from "../../common/ports.js";
import { formatDuration } from "../duration.js";
import { LeaseholdError } from "../errors.js";
import type { ExclusiveLeases, Held } from "./exclusive.js";
import { withTimeout } from "./with-timeout.js";

/**
 * Counted leases: at most n participants hold the name at a time, each with one of its n slots. A slot is an
 * exclusive lease, so exclusion, tokens and loss are those of exclusive leases, on every ground. Callers with
 * different limits share the same slots, numbered from 0, so the greatest limit in use bounds the holders.
 */

/** Timeout of a query for the holder of a slot, ms. The query merely saves an attempt. */
const queryTimeoutMs = 1_000;

/**
 * After this fraction of the ttl a caller begins to wait for every slot, even if queries are still
 * unanswered.
 */
const looksPerTtl = 3;

/**
 * One attempt: a slot, or `undefined` if others have all of them. It tries a random slot first, so that
 * newcomers rarely collide, and then the slots that seem free. So it takes one round trip when most slots are
 * free, and two when all are taken.
 */
export async function tryAny(
  leases: ExclusiveLeases,
  slots: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Held | undefined> {
  const [first, ...others] = shuffled(slots, leases.world.random);
  const lease = await leases.try(first!, signal);
  if (lease !== undefined || others.length === 0) return lease;
  const looks = Promise.all(others.map((slot) => seemsTaken(leases, slot)));
  const seemTaken = await unlessAborted(looks, signal);
  for (const [index, slot] of others.entries()) {
    if (seemTaken[index] === true) continue;
    signal?.throwIfAborted();
    const other = await leases.try(slot, signal);
    if (other !== undefined) return other;
  }
  return undefined;
}

/** Waits for every slot, and takes the first that becomes free. */
export async function waitAny(
  leases: ExclusiveLeases,
  slots: readonly string[],
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<Held> {
  const { clock, timers } = leases.world;
  const deadlineMs = clock.monotonicMs() + waitMs;
  const lookMs = Math.min(waitMs, leases.ttlMs / looksPerTtl);
  // A plain attempt comes first, because `waitAtAll` takes every free slot and gives back all but one.
  const looking = withTimeout(timers, lookMs, signal, (bounded) => tryAny(leases, slots, bounded));
  const found = await looking.catch(() => undefined);
  if (found !== undefined) return found;
  signal?.throwIfAborted();
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  try {
    return await waitAtAll(leases, slots, leftMs, signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof AggregateError)) throw error;
    const errors: unknown[] = error.errors;
    throw errors.some(isTimeout) ? tooLate(slots, waitMs, errors[0]) : errors[0];
  }
}

/** @throws AggregateError when no slot could be acquired */
async function waitAtAll(
  leases: ExclusiveLeases,
  slots: readonly string[],
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<Held> {
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  let won: Held | undefined;
  const waitAt = async (slot: string): Promise<Held> => {
    const lease = await leases.wait(slot, waitMs, stop.signal);
    if (won !== undefined) {
      // Another slot became free at the same time.
      await lease.release();
      return won;
    }
    won = lease;
    stop.abort();
    return lease;
  };
  watchAbort(signal, abort);
  const waiting = slots.map(waitAt);
  try {
    const lease = await Promise.any(waiting);
    lease.releaseWith(Promise.allSettled(waiting));
    return lease;
  } finally {
    unwatchAbort(signal, abort);
  }
}

/** A hint: false when the query fails. */
async function seemsTaken(leases: ExclusiveLeases, slot: string): Promise<boolean> {
  const hint = await leases.query(slot, queryTimeoutMs).catch(() => undefined);
  return hint?.state === "held";
}

function tooLate(slots: readonly string[], waitMs: number, cause: unknown): LeaseholdError {
  const name = JSON.stringify(slots[0]);
  return new LeaseholdError(
    "TIMEOUT",
    `waited ${formatDuration(waitMs)} for one of the ${slots.length} slots of ${name}, and others still have them`,
    { cause },
  );
}

function isTimeout(error: unknown): boolean {
  return error instanceof LeaseholdError && error.code === "TIMEOUT";
}

/** A shuffled copy (Fisher–Yates). */
function shuffled(slots: readonly string[], random: Random): string[] {
  const order = [...slots];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random.next() * (last + 1));
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}
