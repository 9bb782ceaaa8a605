import type { JsonValue } from "./json-value.js";

/** The options of the calls of the waist. */

/**
 * Milliseconds as a number of 0 or more, or text that consists of one number and one unit: `"500ms"`,
 * `"1.5s"`, `"15s"`, `"1m"`, `"2h"`. Anything else, and more than 2^53 - 1 ms, is refused with
 * `INVALID_DURATION`.
 */
export type Duration = number | string;

/** The options of a tenure. */
export interface TenureOptions {
  /**
   * The length of the lease. Default and maximum: `guarantees.ttlMaxMs`; minimum: `guarantees.ttlMinMs`. A
   * shorter lease frees the resource sooner after a crash but costs more renewals.
   */
  ttl?: Duration | undefined;
  /** Cancels the call; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /**
   * Renew the lease after a third of the TTL (earlier if the last renewal was slow) until it is released.
   * Default true.
   */
  autoRenew?: boolean | undefined;
  /**
   * The maximum length of the tenure, regardless of renewals: the lease is then lost with the reason
   * `max-hold`. More than 0. Default: no bound.
   */
  maxHold?: Duration | undefined;
  /**
   * Data for others to read as `data` in the answers of `holder`, `list`, `watch`, `leader` and `explain`:
   * plain objects, arrays, text, finite numbers, booleans and null, at most 1,024 bytes as JSON in UTF-8. It
   * is a hint to people and programs, visible to everybody who may query, so it must not contain secrets.
   * Other values are refused with `INVALID_CONFIG`; if `guarantees.data` is false, any data is refused with
   * `UNSUPPORTED`.
   */
  data?: JsonValue | undefined;
}

export interface TryAcquireOptions extends TenureOptions {
  /**
   * A counted lease (a semaphore): the maximum number of holders of the name at a time, a whole number from 1
   * to 64. Each holder has a slot ({@link Lease.slot}), which is a resource with its own tokens ({@link
   * Lease.resource}). If callers give different limits, the greatest one in use bounds the holders. So a
   * greater limit takes effect at once, and a smaller one as the holders of the slots beyond it release.
   * Default 1: an exclusive lease.
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
   * Readers and writers, for names that end with `/~rw`: up to 16 `"shared"` leases are held at the same
   * time; an `"exclusive"` lease, or one acquired without `mode`, is held alone. A writer's token is greater
   * than those of all earlier readers, and a reader's is greater than those of all earlier writers. While a
   * writer waits, no new reader is admitted. For other names `mode` is refused with `INVALID_NAME`. It can't
   * be combined with `limit`.
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
 * The options of {@link Leases.acquireAll}. There is no `limit` and no `mode`, because they would apply to
 * every name: acquire such names with separate calls, in the order of the names' bytes. A name that ends with
 * `/~rw` is acquired by a writer.
 */
export interface AcquireAllOptions extends TenureOptions {
  /**
   * How long to wait for the lease. Default `"1m"`; `Infinity` waits until the signal aborts; `0` does not
   * wait (a lease held by another is then `LEASE_HELD`, not `TIMEOUT`). An attempt in flight at the deadline
   * may take up to 100 ms longer; a lease that it gets is returned to the caller.
   */
  wait?: Duration | undefined;
}

export interface AcquireOptions extends TryAcquireOptions, AcquireAllOptions {
  /**
   * Wait in order: among callers that set `fair`, the first to call gets the resource first.
   * `guarantees.fair` says how strict the order is. If it is `none`, the call is refused with `UNSUPPORTED`
   * before anything is sent. A call without `fair` may get the resource in between. Calls with `limit` or
   * `mode` share the name's queue: a reader waits for a writer ahead of it. With `wait: 0`, `fair` is refused
   * with `INVALID_CONFIG`, as a caller that doesn't wait has no place in a queue. Default false.
   *
   * If the order is strict, a crashed caller blocks those behind it for its `ttl`, but no longer than
   * `guarantees.takeoverMsMax`. A process that was stopped for that long goes to the end.
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
   * The maximum number of leaders at a time, as in {@link TryAcquireOptions.limit}: several active processes
   * among many on standby. Each leads one slot ({@link Lease.slot}). Default 1.
   */
  limit?: number | undefined;
  /** The length of the lease, as in {@link TryAcquireOptions.ttl}. */
  ttl?: Duration | undefined;
  /** Data for others to read, as in {@link TryAcquireOptions.data}. */
  data?: JsonValue | undefined;
  /** Ends the campaign or the leadership; `lead` then resolves when the callback has settled. */
  signal?: AbortSignal | undefined;
}

export interface QueryOptions {
  /** Timeout for the whole call, however many answers it needs. Default `"5s"`. */
  timeout?: Duration | undefined;
  /**
   * Cancels the call; the promise rejects with the signal's reason. A request that was already sent, for
   * example to break a lease, may still take effect.
   */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends QueryOptions {
  /**
   * Called if the list is incomplete because some members did not answer, with a sentence that names them.
   * Without this option `list` then rejects with `NO_QUORUM`.
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
   * Treats the text as one name, not as a prefix: longer names are not reported. The ground still watches the
   * prefix, and sends every name below it. Default false.
   */
  exact?: boolean | undefined;
}
