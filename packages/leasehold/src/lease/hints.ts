import type { JsonValue } from "./json-value.js";

/**
 * The answers about the leases of others. In JSON, tokens are decimal strings: each answer can be
 * the reply of an HTTP handler.
 */

/**
 * The known holder of a resource: a hint, out of date as soon as it is read. Never base exclusion on
 * it.
 */
export interface HolderHint {
  /** `unknown`: too few members answered, or their answers differ. */
  readonly state: "held" | "free" | "unknown";
  /** The holder, `name.incarnation`. Only when held. */
  readonly holder?: string;
  /** Its fencing token. Only when held. */
  readonly token?: bigint;
  /** Milliseconds until the lease expires, at most, unless it is renewed. */
  readonly remainingMs?: number;
  /** True when a majority gave the same answer. */
  readonly confirmed?: boolean;
  /** The holder's description of itself: host, process and note. It is not verified. */
  readonly label?: string;
  /**
   * The `data` that the holder gave to `acquire`, at most 1,024 bytes of JSON. It is not verified: treat it
   * like any input from outside. On Flease over TCP it arrives shortly after the lease, and may be missing
   * for a moment after members have restarted.
   */
  readonly data?: JsonValue;
}

export interface ResourceHint extends HolderHint {
  readonly resource: string;
}

/** One change that a watch reports. */
export interface Change {
  readonly resource: string;
  readonly state: "held" | "free";
  /** The tenure that began, or the one that ended. Tokens of one resource never go back. */
  readonly token?: bigint;
  readonly holder?: string;
  readonly label?: string;
  /** As {@link HolderHint.data}. When it arrives after the lease, the tenure is reported once more. */
  readonly data?: JsonValue;
  /** Milliseconds, when this was reported, until the lease expires, at most, unless it is renewed. */
  readonly remainingMs?: number;
}

/** One member's view of a resource in its cell. */
export interface MemberView {
  readonly id: string;
  readonly address: string;
  readonly state: "ready" | "recovering" | "clock-fault" | "unreachable";
  /** Why it did not answer. */
  readonly reason?: string;
  /** `recovering`: milliseconds until it takes part. */
  readonly readyInMs?: number;
  /** The lease that it stores. `live`: the owner may still rely on it. */
  readonly lease?: {
    readonly holder: string;
    readonly token: bigint;
    readonly state: "live" | "over" | "released";
    readonly remainingMs: number;
  };
  /** The highest ballot that it has promised. */
  readonly promised?: bigint;
  /** The owner whose lease was broken: it gets no lease from this member. */
  readonly barred?: string;
  /** The number of participants on this member's list of waiters for the resource. */
  readonly waiting?: number;
}

/** Why a resource can't be acquired, or that it can. A hint, like every answer about the leases of others. */
export interface Explanation extends ResourceHint {
  /** False when too few members answer for anybody to get or renew a lease on this resource. */
  readonly quorum: boolean;
  /** The lease was broken and cannot be renewed any more. */
  readonly broken: boolean;
  /** The number of participants known to wait for it; there may be more. */
  readonly waiting: number;
  /** The same as sentences. */
  readonly reasons: readonly string[];
  /** The members that coordinate this resource; none where there are no members. */
  readonly members: readonly MemberView[];
}

/** The result of a request to release, or to break a lease. */
export interface HolderAction {
  /** The holder concerned; `undefined` when nobody seems to hold the resource. */
  readonly holder?: string;
  readonly token?: bigint;
  /**
   * `requestRelease`: the holder was notified; it may ignore the request. `break`: enough members refuse the
   * holder from now on that it cannot renew.
   */
  readonly done: boolean;
  /** Milliseconds until the lease expires, at most, unless it is renewed. */
  readonly remainingMs?: number;
}

/**
 * The leader of one name: an iterator over its changes, with the latest at hand. It follows the name from the
 * call on, whether or not anybody reads; a change that was not read in time is replaced by the next.
 */
export interface LeaderObserver extends AsyncIterableIterator<Change, undefined> {
  /**
   * The last change reported: `held` by a leader, or `free` when nobody leads. `undefined` until the first
   * answer, and after the end. A hint, like every answer about the leases of others.
   */
  readonly current: Change | undefined;
}
