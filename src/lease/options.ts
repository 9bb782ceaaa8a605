import type { JsonValue } from "./json-value.js";

/** What calls of the waist may be told. */

/**
 * Milliseconds as a number of 0 or more, or text of one number and one unit: `"500ms"`, `"1.5s"`, `"15s"`,
 * `"1m"`, `"2h"`. Anything else is refused with `INVALID_DURATION`.
 */
export type Duration = number | string;

export interface TryAcquireOptions {
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

export interface AcquireOptions extends TryAcquireOptions {
  /**
   * How long to wait for a turn. Default `"1m"`; `Infinity` waits until the signal aborts; `0` does not wait
   * (then another's lease is `LEASE_HELD`, not `TIMEOUT`). An attempt that is under way at the deadline may
   * take up to 100 ms longer, and its lease is handed out.
   */
  wait?: Duration | undefined;
}

export interface LeadOptions {
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
