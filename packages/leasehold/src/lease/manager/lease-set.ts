import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { least } from "../../common/lists.js";
import type { Clock } from "../../common/ports.js";
import { formatDuration } from "../duration.js";
import { LeaseholdError, type LeaseLostError } from "../errors.js";
import type { Held } from "../forms/exclusive.js";
import { inspected } from "../plain-data.js";
import { checkResourceName } from "../resource-name.js";
import type { Lease, LeaseSet } from "../types.js";
import type { Holding } from "./work.js";

/**
 * The maximum number of names in one set. They are acquired one after the other: with round trips of 50 ms
 * this many take three seconds, and the first leases are held all that time. To protect more, use one name
 * that represents all of them.
 */
export const leasesOfSetMax = 64;

/**
 * The names without duplicates, in the order in which all processes acquire them: that of their UTF-8 bytes.
 *
 * @throws LeaseholdError `INVALID_NAME`
 */
export function inOrder(names: readonly string[]): string[] {
  // A string is iterable, too: letter by letter.
  if (!Array.isArray(names))
    throw new LeaseholdError("INVALID_NAME", "several names must be an array of strings");
  for (const name of names) checkResourceName(name);
  const distinct = [...new Set(names)];
  if (distinct.length === 0 || distinct.length > leasesOfSetMax) {
    throw new LeaseholdError(
      "INVALID_NAME",
      `${distinct.length} names were given; one call takes 1 to ${leasesOfSetMax}`,
    );
  }
  return distinct.toSorted(byBytes);
}

/** UTF-8 bytes sort like code points; the code units of a string do not. */
function byBytes(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index += 1) {
    const difference = one.codePointAt(index)! - other.codePointAt(index)!;
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

/** Acquires one lease of a set; `signal` ends the wait. */
export type AcquireOne = (name: string, waitMs: number, signal: AbortSignal) => Promise<Held>;

/**
 * Acquires the names one after the other, all within `waitMs`. If one can't be acquired, or one that was
 * acquired is lost meanwhile, releases the others and rejects.
 */
export async function acquireInOrder(
  names: readonly string[],
  waitMs: number,
  signal: AbortSignal | undefined,
  clock: Clock,
  acquire: AcquireOne,
): Promise<HeldLeaseSet> {
  signal?.throwIfAborted();
  const deadlineMs = clock.monotonicMs() + waitMs;
  const held: Held[] = [];
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  const ended = () => stop.abort(held.find((lease) => lease.signal.aborted)?.signal.reason);
  watchAbort(signal, abort);
  try {
    for (const name of names) {
      const leftMs = waitMs === 0 ? 0 : deadlineMs - clock.monotonicMs();
      if (leftMs < 0 || (leftMs === 0 && waitMs > 0)) throw tooLate(names, name, waitMs);
      const lease = await acquire(name, leftMs, stop.signal).catch((error: unknown) => {
        const isLate = error instanceof LeaseholdError && error.code === "TIMEOUT";
        throw isLate ? tooLate(names, name, waitMs, { cause: error }) : error;
      });
      held.push(lease);
      watchAbort(lease.signal, ended);
    }
    for (const lease of held) lease.assertHeld();
    return new HeldLeaseSet(held);
  } catch (error) {
    await releaseAll(held);
    throw error;
  } finally {
    unwatchAbort(signal, abort);
    for (const lease of held) unwatchAbort(lease.signal, ended);
  }
}

function tooLate(
  names: readonly string[],
  next: string,
  waitMs: number,
  options?: ErrorOptions,
): LeaseholdError {
  const missing = `${names.length - names.indexOf(next)} of ${names.length}`;
  return new LeaseholdError(
    "TIMEOUT",
    `waited ${formatDuration(waitMs)}, and ${missing} are missing, the first of them ${JSON.stringify(next)}`,
    options,
  );
}

/** Releases the last acquired first. From the call on, none of them counts as held. */
async function releaseAll(leases: readonly Held[]): Promise<void> {
  await Promise.all(leases.toReversed().map((lease) => lease.release()));
}

/** Several leases as one; see `LeaseSet`. */
export class HeldLeaseSet implements LeaseSet, Holding {
  readonly leases: readonly Held[];
  readonly #controller = new AbortController();

  constructor(leases: readonly Held[]) {
    this.leases = leases;
    for (const { signal } of leases) watchAbort(signal, () => this.#controller.abort(signal.reason));
  }

  get resources(): readonly string[] {
    return this.leases.map(({ resource }) => resource);
  }

  get signal(): AbortSignal {
    this.remaining();
    return this.#controller.signal;
  }

  get loss(): LeaseLostError | undefined {
    return this.leases.map(({ loss }) => loss).find((loss) => loss !== undefined);
  }

  set hasWork(hasWork: boolean) {
    for (const lease of this.leases) lease.hasWork = hasWork;
  }

  get(resource: string): Lease {
    const lease = this.leases.find((each) => each.resource === resource);
    if (lease !== undefined) return lease;
    throw new LeaseholdError("INVALID_NAME", `${JSON.stringify(resource)} is not among these leases`);
  }

  remaining(): number {
    return least(this.leases.map((lease) => lease.remaining()));
  }

  assertHeld(atLeastMs = 0): void {
    for (const lease of this.leases) lease.assertHeld(atLeastMs);
  }

  resign(reason: unknown): void {
    for (const lease of this.leases) lease.resign(reason);
  }

  release(): Promise<void> {
    return releaseAll(this.leases);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  [inspected]() {
    return this.toJSON();
  }

  toJSON(): ReturnType<LeaseSet["toJSON"]> {
    return { leases: this.leases.map((lease) => lease.toJSON()), remainingMs: this.remaining() };
  }
}
