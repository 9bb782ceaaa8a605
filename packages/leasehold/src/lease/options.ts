import type { JsonValue } from "./json-value.js";

/** The options of the calls of the waist. */

/**
 * Milliseconds as a number of 0 or more, or text of one number and one unit: `"500ms"`, `"1.5s"`, `"15s"`,
 * `"1m"`, `"2h"`. Anything else, and more than 2^53 - 1 ms, is refused with `INVALID_DURATION`.
 */
export type Duration = number | string;

/** The options of a tenure. */
export interface TenureOptions {
  /**
   * Length of the lease. Default and maximum: `guarantees.ttlMaxMs`; minimum: `guarantees.ttlMinMs`. A
   * shorter one frees the resource sooner after a crash, and costs more renewals.
   */
  ttl?: Duration | undefined;
  /** Cancels the call; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Renew at a third of the TTL, after a slow renewal earlier, until released. Default true. */
  autoRenew?: boolean | undefined;
  /**
   * The tenure ends at the latest this long after it began, regardless of renewals: it is then lost with the
   * reason `max-hold`. More than 0. Default: no bound.
   */
  maxHold?: Duration | undefined;
  /**
   * Data for others to read, as `data` of `holder`, `list`, `watch`, `leader` and `explain`: plain objects,
   * arrays, text, finite numbers, booleans and null, at most 1,024 bytes as JSON in UTF-8. It is a hint to
   * people and programs, visible to everybody who may query: no secrets. Anything else is refused with
   * `INVALID_CONFIG`, and any data with `UNSUPPORTED` where `guarantees.data` is false.
   */
  data?: JsonValue | undefined;
}

export interface TryAcquireOptions extends TenureOptions {
  /**
   * A counted lease (a semaphore): the maximum number of holders of the name at a time, a whole number from 1
   * to 64. Each holder has a slot ({@link Lease.slot}), which is a resource with tokens of its own ({@link
   * Lease.resource}). Where callers give different limits, the greatest in use bounds the holders: to admit
   * more, give more; a smaller limit takes effect as holders of the slots beyond it release. Default 1: an
   * exclusive lease.
   *
   * A waiter queues for every slot and takes the first that becomes free. Callers of one process are served
   * in turn; between processes there is no order.
   *
   * @example
   * ```ts
   * await using seat = await leases.acquire("licences", { limit: 3 }); // with at most two others
   * console.log(seat.slot < 3, seat.resource.startsWith("licences")); // true true
   * ```
   */
  limit?: number | undefined;
  /**
   * Readers and a writer, of names that end with `/~rw`: a `"shared"` lease is held beside other shared ones,
   * at most 16 at a time; an `"exclusive"` lease is held alone, and so is one acquired without `mode`. A
   * writer's token is greater than those of all readers before it, and a reader's greater than those of all
   * writers before. A waiting writer admits no new reader. For other names `mode` is refused with
   * `INVALID_NAME`. It can't be combined with `limit`.
   *
   * The protected resource should refuse a writer with a token smaller than the greatest it has seen, and a
   * reader with one smaller than the greatest *writer's*: readers overlap in any order. A crashed reader
   * blocks writers for at most its `ttl`. A writer's `maxHold` and `ttl` count from when the readers have
   * gone. A reader's {@link Lease.detach} gives no handle.
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
 * The options of {@link Leases.acquireAll}. It takes no `limit` and no `mode`, as they would apply to every
 * name: acquire such names by calls of their own, in the order of the names' bytes. A name that ends with
 * `/~rw` is acquired as its writer.
 */
export interface AcquireAllOptions extends TenureOptions {
  /**
   * How long to wait for the lease. Default `"1m"`; `Infinity` waits until the signal aborts; `0` does not
   * wait (a lease held by another is then `LEASE_HELD`, not `TIMEOUT`). An attempt in flight at the deadline
   * may take up to 100 ms longer, and its lease is returned.
   */
  wait?: Duration | undefined;
}

export interface AcquireOptions extends TryAcquireOptions, AcquireAllOptions {
  /**
   * Wait in order: among callers that set `fair`, the first to call gets the resource first.
   * `guarantees.fair` says how strict the order is; where it is `none` the call is refused with `UNSUPPORTED`
   * before anything is sent. A call without `fair` may get the resource in between. Calls with `limit` and
   * `mode` share the queue of the name: a reader waits for a writer before it. Together with `wait: 0` it is
   * refused with `INVALID_CONFIG`: a caller that doesn't wait has no place in a queue. Default false.
   *
   * Where the order is strict, a caller that has crashed blocks those behind it for its `ttl`, and no longer
   * than `guarantees.takeoverMsMax`; one that was stopped for that long goes to the end.
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
   * The maximum number of leaders at a time, as in {@link TryAcquireOptions.limit}: a few active among many
   * on standby. Each leads one slot ({@link Lease.slot}). Default 1.
   */
  limit?: number | undefined;
  /** Length of the lease, as in {@link TryAcquireOptions.ttl}. */
  ttl?: Duration | undefined;
  /** Data for others to read, as in {@link TryAcquireOptions.data}. */
  data?: JsonValue | undefined;
  /** Ends the campaign, or the leadership; `lead` then returns when the callback has settled. */
  signal?: AbortSignal | undefined;
}

export interface QueryOptions {
  /** Timeout of the whole call, however many answers it needs. Default `"5s"`. */
  timeout?: Duration | undefined;
  /**
   * Cancels the call; the promise rejects with the signal's reason. A request already sent, to break a lease
   * for example, may still take effect.
   */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends QueryOptions {
  /**
   * Called, with a sentence that names the members, when members that did not answer leave some resources
   * unknown; the list is then incomplete. Without it, `list` rejects with `NO_QUORUM` in that case.
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
   * The text is one name and not a prefix: longer names are not reported. The ground still watches the
   * prefix, and sends every name below it. Default false.
   */
  exact?: boolean | undefined;
}
