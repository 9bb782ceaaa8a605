import { Acceptor } from "../protocol/acceptor.js";
import { numberAt } from "../protocol/ballot.js";
import type { Reading } from "../protocol/clock.js";
import { Kind } from "../protocol/message.js";
import type { Message } from "../protocol/message.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { EntryRecord, Request } from "./record.js";

/** The result of a request: what to write before any answer may leave, and what to report. */
export interface Step {
  /** The record of the acceptor's new state; `undefined` when there is nothing to write. */
  readonly next: EntryRecord | undefined;
  /** Whether the reply was filled in. */
  readonly replies: boolean;
  /** A request of another participant that the requester, as the holder, has not seen yet. */
  readonly heard: Request | undefined;
}

/**
 * The acceptor of section 3.4 on a store. The code is the same, but each process that has a request loads the
 * entry and runs the acceptor itself. That changes the rules as follows:
 *
 * - **The second clock.** The steady clocks of two processes have nothing in common, so here a lease has no
 *   end on a steady clock: it is over when the wall clock says so (`lo ≥ until + ε`). If wall clocks are
 *   further apart than ε, only the fencing token protects. The *holder's* rule (3.6) keeps both of its
 *   clocks: a hold ends by the first of them.
 * - **Many clocks.** The readings of the processes that act as this acceptor are not ordered: one may find a
 *   lease over that the next, up to ε behind, finds unfinished. That is harmless, because `lo ≥ until + ε` by
 *   *one* process within ε of the holder means that the holder's `hi` has reached `until` at that moment;
 *   `hi` never goes back, so the hold is over for good, however late the write lands and whatever others
 *   read. A process that finds a lease unfinished refuses, and refusing is always safe.
 * - **Bounds.** A requester checks its own bounds: `until ≤ wall + ε + ttlMax` and `number ≤ num(wall + ε)`
 *   are tested by the clock that made them. So for any clock within ε they hold with one more ε. From this
 *   {@link forgettingWaitMs} is computed, and values beyond it are what {@link StoreAcceptor.checkTimes}
 *   refuses as impossible.
 * - **Promises.** Net B uses no clock. It relies only on the entry being written by compare-and-set.
 * - **Recovery, floor and discarding** (3.7, 3.8). Entries outlive every process and are never dropped, so
 *   nothing is forgotten and there is no wait. A *store* that forgets is silent for {@link forgettingWaitMs};
 *   the floor below compensates for the promises lost with it.
 */
export class StoreAcceptor {
  readonly #settings: FleaseSettings;
  readonly #label: string | undefined;
  /** Public data of this process's tenures, as JSON, by resource. */
  readonly data = new Map<string, string>();

  /** @param label of this process, stored with its leases. */
  constructor(settings: FleaseSettings, label?: string) {
    this.#settings = settings;
    this.#label = label;
  }

  /** Loads the acceptor from its register, for admin RPCs, which send it no request. */
  load(resource: string, record: EntryRecord | undefined, now: Reading): Acceptor {
    // A copy, because the acceptor writes to its entry. Without a common steady clock, the lease's end on it
    // counts as past.
    const entry = record && { ...record.entry, leaseExpiresMonoMs: -Infinity, payer: 0 };
    return Acceptor.loaded(this.#settings, resource, entry, this.#floor(now), now);
  }

  /** Whether the owner of the lease may still rely on it. */
  isLive(record: EntryRecord, now: Reading): boolean {
    const acceptor = this.load(record.resource, record, now);
    return !acceptor.isOver(acceptor.entry(record.resource)!, now);
  }

  /** Handles a request. The reading must have been made after the record was loaded. */
  handle(record: EntryRecord | undefined, request: Message, now: Reading, reply: Message): Step {
    const { resource } = request;
    const acceptor = this.load(resource, record, now);
    const replies = acceptor.receive(request, now, reply);
    const entry = acceptor.entry(resource);
    if (entry === undefined) return { next: undefined, replies, heard: undefined };
    const accepted = replies && reply.kind === Kind.ack;
    const sameTenure =
      record?.entry.token === entry.token && record.entry.leaseOwner === entry.leaseOwner
        ? record
        : undefined;
    const asked = sameTenure?.asked;
    const heard = asked?.heard === false && entry.leaseOwner === request.owner ? asked : undefined;
    const label = accepted ? this.#label : record?.label;
    const data = accepted ? this.data.get(resource) : record?.data;
    const next: EntryRecord = {
      resource,
      entry,
      ...(label !== undefined && { label }),
      ...(asked !== undefined && { asked: { ...asked, heard: asked.heard || heard !== undefined } }),
      ...(data !== undefined && { data }),
    };
    return { next, replies, heard };
  }

  /**
   * Refuses an entry that no clock within ε of this one can have written: the resource counts neither as free
   * nor as held.
   *
   * @throws LeaseholdError `CLOCK_SKEW`
   */
  checkTimes({ entry }: EntryRecord, now: Reading): void {
    const { maxClockSkewMs, ttlMaxMs } = this.#settings;
    // One ε between the writer's clock and this one, one within the writer's own bound, and one for a step
    // back.
    const latestMs = now.wall + 3 * maxClockSkewMs + 1;
    if (entry.promisedNumber <= numberAt(latestMs) && entry.leaseExpiresWallMs <= latestMs + ttlMaxMs) return;
    throw new LeaseholdError(
      "CLOCK_SKEW",
      "an entry comes from a time that this machine's clock is far from having reached: this clock is behind, or its writer's was ahead",
    );
  }

  /**
   * The floor of a resource that was never written, or that the store has forgotten. A store that has
   * forgotten counts again only when every ballot that it may have promised is {@link forgettingWaitMs} old,
   * give or take 4 ε. So half of that wait is a floor above all of them. A participant that still uses a
   * ballot that old was stopped meanwhile. The floor is harmless where nothing was forgotten, so it is always
   * applied.
   */
  #floor(now: Reading): number {
    return Math.max(0, numberAt(now.lo - forgettingWaitMs(this.#settings) / 2));
  }
}

/**
 * How long a store that has forgotten must not count, ms. By the clock `w` of the participant that notices at
 * time `t`, the forgotten leases end at `until ≤ w(t) + 3 ε + ttlMax`: the bound that the writer kept, its
 * clock's distance from `w`, and a step back of less than ε. The holder's `hi` has reached `until` when any
 * process's `lo` has reached one ε more. That takes 4 of the 8 ε; the rest leaves room for {@link
 * StoreAcceptor}'s floor. The factor covers steady clocks of any allowed rate, where the wait is counted on
 * one.
 */
export function forgettingWaitMs({ ttlMaxMs, maxClockSkewMs, mutualRateError }: FleaseSettings): number {
  return (ttlMaxMs + 8 * maxClockSkewMs) * (1 + mutualRateError);
}
