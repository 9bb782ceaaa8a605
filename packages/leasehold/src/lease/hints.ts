import type { JsonValue } from "./json-value.js";

/**
 * Answers about the leases of others. In JSON, tokens are decimal strings, so an HTTP handler can return each
 * answer as it is.
 */

/**
 * The known holder of a resource: a hint, which may be out of date as soon as it is read. Never base
 * exclusion on it.
 */
export interface HolderHint {
  /** `unknown`: too few members answered, or their answers differ. */
  readonly state: "held" | "free" | "unknown";
  /** The holder, `name.incarnation`. Only when held. */
  readonly holder?: string;
  /** Its fencing token. Only when held. */
  readonly token?: bigint;
  /** The maximum number of milliseconds until the lease expires, unless it is renewed. */
  readonly remainingMs?: number;
  /** True if a majority gave the same answer. */
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
  /** The tenure that began or ended. Tokens of one resource never decrease. */
  readonly token?: bigint;
  readonly holder?: string;
  readonly label?: string;
  /** As {@link HolderHint.data}. If it arrives after the lease, the tenure is reported again. */
  readonly data?: JsonValue;
  /**
   * At the time of this report, the maximum number of milliseconds until the lease expires, unless it is
   * renewed.
   */
  readonly remainingMs?: number;
}

/** One member's state of a resource. */
export interface MemberView {
  readonly id: string;
  readonly address: string;
  readonly state: "ready" | "recovering" | "clock-fault" | "unreachable";
  /** Why the member did not answer. */
  readonly reason?: string;
  /** `recovering`: milliseconds until the member takes part. */
  readonly readyInMs?: number;
  /** The lease that the member stores. `live`: the owner may still rely on it. */
  readonly lease?: {
    readonly holder: string;
    readonly token: bigint;
    readonly state: "live" | "over" | "released";
    readonly remainingMs: number;
  };
  /** The highest ballot that the member has promised. */
  readonly promised?: bigint;
  /** The owner whose lease was broken: this member accepts no lease of that owner. */
  readonly barred?: string;
  /** The number of waiters for the resource that this member knows. */
  readonly waiting?: number;
}

/**
 * Whether a resource can be acquired and, if not, why. A hint, like every answer about the leases of others.
 */
export interface Explanation extends ResourceHint {
  /** False if too few members answer, so that nobody can acquire or renew a lease on this resource. */
  readonly quorum: boolean;
  /** The lease was broken and can no longer be renewed. */
  readonly broken: boolean;
  /** The number of known waiters; there may be more. */
  readonly waiting: number;
  /** The explanation as sentences. */
  readonly reasons: readonly string[];
  /** The members that coordinate this resource; empty on grounds without members. */
  readonly members: readonly MemberView[];
}

/** The result of a request to release or break a lease. */
export interface HolderAction {
  /** The holder concerned; `undefined` if nobody seems to hold the resource. */
  readonly holder?: string;
  readonly token?: bigint;
  /**
   * `requestRelease`: the holder was notified; it may ignore the request. `break`: so many members now refuse
   * the holder that it cannot renew.
   */
  readonly done: boolean;
  /** The maximum number of milliseconds until the lease expires, unless it is renewed. */
  readonly remainingMs?: number;
}

/**
 * The leader of one name: an iterator over its changes, which also has the latest one. It follows the name
 * from the call on, whether or not anybody reads. A change that was not read in time is replaced by the next.
 */
export interface LeaderObserver extends AsyncIterableIterator<Change, undefined> {
  /**
   * The latest change: `held` by a leader, or `free` if nobody leads. `undefined` before the first answer and
   * after the end. A hint, like every answer about the leases of others.
   */
  readonly current: Change | undefined;
}
