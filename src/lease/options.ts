import type { JsonValue } from "./json-value.js";

/** What calls of the waist may be told. */

/**
 * Milliseconds as a number of 0 or more, or text of one number and one unit: `"500ms"`, `"1.5s"`, `"15s"`,
 * `"1m"`, `"2h"`. Anything else, and more than 2^53 - 1 ms, is refused with `INVALID_DURATION`.
 */
export type Duration = number | string;

/** What is said of a tenure before it begins. */
export interface TenureOptions {
  /**
   * Length of the lease. Default and maximum: `guarantees.ttlMaxMs`; minimum: `guarantees.ttlMinMs`. A
   * shorter one frees the resource sooner after a crash, and costs more renewals.
   */
  ttl?: Duration | undefined;
  /** Ends the call; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Renew at a third of the TTL until released. Default true. */
  autoRenew?: boolean | undefined;
  /**
   * The tenure ends at the latest this long after it began, whatever the renewals say: it is then lost with
   * the reason `max-hold`. More than 0. Default: no bound.
   */
  maxHold?: Duration | undefined;
  /**
   * What others read of this tenure, as `data` of `holder`, `list`, `watch`, `leader` and `explain`: plain
   * objects, arrays, text, finite numbers, booleans and null, at most 1,024 bytes as JSON in UTF-8. It is a
   * hint to people and programs, seen by everybody who may ask: no secrets. Anything else is refused with
   * `INVALID_CONFIG`, and any data with `UNSUPPORTED` where `guarantees.data` is false.
   */
  data?: JsonValue | undefined;
}

export interface TryAcquireOptions extends TenureOptions {
  /**
   * A counted lease (a semaphore): at most so many hold the name at a time, a whole number from 1 to 64. Each
   * has a slot ({@link Lease.slot}), which is a resource with tokens of its own ({@link Lease.resource}).
   * Where callers give different limits, the greatest in use bounds the holders: to let in more, give more;
   * a smaller one takes effect as holders of the slots beyond it release. Without it, 1: an exclusive lease.
   *
   * Who waits does so at every slot, and gets the first that becomes free. Callers of one process are served
   * in turn; between processes no order is promised.
   *
   * @example
   * ```ts
   * await using seat = await leases.acquire("licences", { limit: 3 }); // with at most two others
   * console.log(seat.slot < 3, seat.resource.startsWith("licences")); // true true
   * ```
   */
  limit?: number | undefined;
  /**
   * Readers and a writer, of names that end with `/~rw`: `"shared"` holds beside others that are shared, at
   * most 16 at a time, `"exclusive"` holds alone, and a call without `mode` is exclusive. A writer's token is
   * greater than those of all readers before it, and a reader's greater than those of all writers before. A
   * writer that waits lets no new reader in. Other names have no readers: `mode` is refused with
   * `INVALID_NAME` there. Not together with `limit`.
   *
   * What the lease protects should refuse a writer with a token smaller than the greatest it has seen, and a
   * reader with one smaller than the greatest *writer's*: readers come and go beside each other. A reader is
   * in the way of writers no longer than its `ttl` after it has crashed. A writer's `maxHold` and `ttl` count
   * from when the readers have gone. A reader's {@link Lease.detach} gives no handle.
   *
   * @example
   * ```ts
   * const reader = await leases.acquire("catalogue/~rw", { mode: "shared" });
   * await reader.release();
   * await using writer = await leases.acquire("catalogue/~rw");
   * console.log(writer.token > reader.token); // true
   * ```
   */
  mode?: "shared" | "exclusive" | undefined;
}

/**
 * What {@link Leases.acquireAll} may be told. It takes no `limit` and no `mode`, as they would be meant for
 * one of the names and count for all: acquire those by calls of their own, in the order of the names' bytes.
 * Of a name that ends with `/~rw` it is the writer.
 */
export interface AcquireAllOptions extends TenureOptions {
  /**
   * How long to wait for a turn. Default `"1m"`; `Infinity` waits until the signal aborts; `0` does not wait
   * (then another's lease is `LEASE_HELD`, not `TIMEOUT`). An attempt that is under way at the deadline may
   * take up to 100 ms longer, and its lease is handed out.
   */
  wait?: Duration | undefined;
}

export interface AcquireOptions extends TryAcquireOptions, AcquireAllOptions {
  /**
   * Wait in order: who calls first gets the resource first, among those who say `fair`. How strict that is
   * says `guarantees.fair`; where it is `none` the call is refused with `UNSUPPORTED` before anything is
   * sent. A call without it may get the resource in between. With `limit` and `mode` those in line come in
   * order whatever they want: a reader waits for a writer before it. Together with `wait: 0` it is refused
   * with `INVALID_CONFIG`: who does not wait has no place in a line. Default false.
   *
   * Where it is strict, a caller that has crashed is in the way of those behind it for its `ttl`, and no
   * longer than `guarantees.takeoverMsMax`; one that was stopped for so long goes to the end.
   *
   * @example
   * ```ts
   * await using lease = await leases.acquire("ramp", { fair: true, wait: "10m" });
   * console.log(leases.guarantees.fair); // strict
   * ```
   */
  fair?: boolean | undefined;
}

export interface LeadOptions {
  /**
   * At most so many lead at a time, as in {@link TryAcquireOptions.limit}: a few active of many that stand
   * by. Each leads one slot ({@link Lease.slot}). Default 1.
   */
  limit?: number | undefined;
  /** Length of the lease, as in {@link TryAcquireOptions.ttl}. */
  ttl?: Duration | undefined;
  /** What others read of the leader, as in {@link TryAcquireOptions.data}. */
  data?: JsonValue | undefined;
  /** Ends the campaign, or the leadership; `lead` then returns when the callback has settled. */
  signal?: AbortSignal | undefined;
}

export interface QueryOptions {
  /** How long the whole call may wait for answers, however many it needs. Default `"5s"`. */
  timeout?: Duration | undefined;
  /**
   * Ends the call; the promise rejects with the signal's reason. What was asked by then, to break a lease
   * say, may still be done.
   */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends QueryOptions {
  /**
   * Told when members that did not answer leave some resources unknown, with a sentence that says which
   * members; the list is then incomplete. Without it, `list` rejects with `NO_QUORUM` in that case.
   */
  onIncomplete?: ((why: string) => void) | undefined;
}

export interface LeaderOptions {
  /** Ends the observation. */
  signal?: AbortSignal | undefined;
}

export interface WatchOptions {
  /** Ends the watch. */
  signal?: AbortSignal | undefined;
  /**
   * The text is one name and no prefix: nothing is told of names that only begin so. The ground is still
   * asked by the prefix, and sends what begins so. Default false.
   */
  exact?: boolean | undefined;
}
