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
  /** A request of others to the requester, which holds the lease and has not seen it yet. */
  readonly heard: Request | undefined;
}

/**
 * The acceptor of section 3.4 on a store: the same code, handed the entry as it was loaded, by whichever process has
 * something to ask of it. What that changes, rule by rule:
 *
 * - **The second clock.** The steady clocks of two processes have nothing in common, so a lease has no end on one here: it is
 *   over when the wall clock says so (`lo ≥ until + ε`). If wall clocks are further apart than ε, only the fencing token
 *   protects. The *holder's* rule (3.6) keeps both of its clocks: a hold ends by the first of them.
 * - **Many clocks.** The readings of the processes that act as this acceptor are not ordered: one may find a
 *   lease over that the next, up to ε behind, finds unfinished. That is harmless, since `lo ≥ until + ε` by
 *   *one* process within ε of the holder means that the holder's `hi` has reached `until` at that moment;
 *   `hi` never goes back, so the hold is over for good, however much later the write lands and whatever
 *   others read. A process that finds a lease unfinished refuses, and refusing is always safe.
 * - **Bounds.** A requester is its own judge: `until ≤ wall + ε + ttlMax`, `number ≤ num(wall + ε)` are tested by the clock that
 *   made them. So they hold by any clock within ε with one ε more; that is what {@link forgettingWaitMs} is computed from, and
 *   what {@link StoreAcceptor.checkTimes} refuses as impossible.
 * - **Promises.** Net B asks no clock. It rests on the entry being compared and set, and on nothing else.
 * - **Recovery, floor and discarding** (3.7, 3.8). Entries outlive every process and are never dropped, so nothing is
 *   forgotten and there is no wait. A *store* that forgets is silent for {@link forgettingWaitMs}; the floor below makes up for
 *   the promises that went with it.
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

  /** Loads the acceptor from its register, for queries without a request. */
  load(resource: string, record: EntryRecord | undefined, now: Reading): Acceptor {
    // A copy: the acceptor writes into its entry. Without a common steady clock that end is always past.
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
   * Refuses an entry that no clock within ε of this one can have written: it counts neither as free nor as
   * held.
   *
   * @throws LeaseholdError `CLOCK_SKEW`
   */
  checkTimes({ entry }: EntryRecord, now: Reading): void {
    const { maxClockSkewMs, ttlMaxMs } = this.#settings;
    // One ε between its writer's clock and this one, one that the writer's bound has itself, one for a step back.
    const latestMs = now.wall + 3 * maxClockSkewMs + 1;
    if (entry.promisedNumber <= numberAt(latestMs) && entry.leaseExpiresWallMs <= latestMs + ttlMaxMs) return;
    throw new LeaseholdError(
      "CLOCK_SKEW",
      "an entry comes from a time that this machine's clock is far from having reached: this clock is behind, or its writer's was ahead",
    );
  }

  /**
   * The floor of a resource that was never written, or that the store has forgotten. A store that has
   * forgotten counts again when every ballot that it may have promised is older than {@link
   * forgettingWaitMs}, give or take 4 ε, so half of that is above all of them; a participant that still uses
   * so old a ballot was stopped meanwhile. It does no harm where nothing was forgotten, so it is always
   * applied.
   */
  #floor(now: Reading): number {
    return Math.max(0, numberAt(now.lo - forgettingWaitMs(this.#settings) / 2));
  }
}

/**
 * How long a store that has forgotten must not count. By the clock `w` of the participant that notices, at `t`: what it knew ends at
 * `until ≤ w(t) + 3 ε + ttlMax` (the bound that its writer kept, its clock against `w`, and a step back of less than ε). The holder's
 * `hi` has reached that when any process's `lo` has reached one ε more. The other half of the eight gives {@link StoreAcceptor}'s
 * floor room, and the stretching makes it as long on any steady clock, where the wait is counted on one.
 */
export function forgettingWaitMs({ ttlMaxMs, maxClockSkewMs, mutualRateError }: FleaseSettings): number {
  return (ttlMaxMs + 8 * maxClockSkewMs) * (1 + mutualRateError);
}
