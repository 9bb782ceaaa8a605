import type { JsonValue } from "./json-value.js";

/**
 * What participants are told of the leases of others. As JSON, tokens are decimal strings: each answer can be
 * the reply of an HTTP handler.
 */

/**
 * What is known of a resource's holder: a hint, out of date as soon as it is read. Never base exclusion on
 * it.
 */
export interface HolderHint {
  /** `unknown`: too few members answered, or they did not say the same. */
  readonly state: "held" | "free" | "unknown";
  /** Who has it, `name.incarnation`. Only when held. */
  readonly holder?: string;
  /** Its fencing token. Only when held. */
  readonly token?: bigint;
  /** Milliseconds. At most this long until the lease runs out unless it is renewed. */
  readonly remainingMs?: number;
  /** True when a whole majority said the same. */
  readonly confirmed?: boolean;
  /** What the holder says of itself: host, process and its note. Nobody checks it. */
  readonly label?: string;
  /**
   * What the holder gave as `data` to `acquire`, at most 1,024 bytes of JSON. Nobody checks it:
   * treat it as anything that comes from outside. On Flease over TCP it comes a moment after the lease, and
   * may be missing for a moment after members have restarted.
   */
  readonly data?: JsonValue;
}

export interface ResourceHint extends HolderHint {
  readonly resource: string;
}

/** One change that a watch tells of. */
export interface Change {
  readonly resource: string;
  readonly state: "held" | "free";
  /** The tenure that began, or the one that ended. Of one resource it never goes back. */
  readonly token?: bigint;
  readonly holder?: string;
  readonly label?: string;
  /** As {@link HolderHint.data}. When it comes after the lease, the tenure is told once more. */
  readonly data?: JsonValue;
  /** When it was told: at most this long until the lease runs out unless it is renewed. */
  readonly remainingMs?: number;
}

/** What one member of a resource's cell says of it. */
export interface MemberView {
  readonly id: string;
  readonly address: string;
  readonly state: "ready" | "recovering" | "clock-fault" | "unreachable";
  /** Why it did not answer. */
  readonly reason?: string;
  /** `recovering`: how long until it takes part. */
  readonly readyInMs?: number;
  /** The lease that it keeps. `live` is one that its owner may still rely on. */
  readonly lease?: {
    readonly holder: string;
    readonly token: bigint;
    readonly state: "live" | "over" | "released";
    readonly remainingMs: number;
  };
  /** The highest ballot that it has promised. */
  readonly promised?: bigint;
  /** The owner whose lease was broken, and who gets no lease from this member. */
  readonly barred?: string;
  /** Participants that wait for the resource and are on this member's list. */
  readonly waiting?: number;
}

/** Why a resource is not to be had, or that it is. A hint, as everything that one can ask. */
export interface Explanation extends ResourceHint {
  /** False when so few members can answer that nobody gets or renews a lease of this resource now. */
  readonly quorum: boolean;
  /** The lease was broken and cannot be renewed any more. */
  readonly broken: boolean;
  /** At least so many participants wait for it. */
  readonly waiting: number;
  /** The same in sentences. */
  readonly reasons: readonly string[];
  /** The members that coordinate this resource; none where there are no members. */
  readonly members: readonly MemberView[];
}

/** What became of a request to release, or to break a lease. */
export interface HolderAction {
  /** Whom it concerned; `undefined` when nobody seems to hold the resource. */
  readonly holder?: string;
  readonly token?: bigint;
  /**
   * `requestRelease`: the holder was told; what it does is its own choice. `break`: so many members refuse
   * the holder from now on that it cannot renew.
   */
  readonly done: boolean;
  /** At most this long until the lease runs out unless it is renewed. */
  readonly remainingMs?: number;
}

/**
 * Who leads: the changes of one name, to iterate over, and the newest of them. It follows from the call on,
 * whether anybody reads or not; a change that was not read before the next is replaced by that.
 */
export interface LeaderObserver extends AsyncIterableIterator<Change, undefined> {
  /**
   * What was told last: `state` is `held` by a leader, or `free` when nobody leads. `undefined` as long as
   * nobody could say, and after the end. A hint, as all that one is told.
   */
  readonly current: Change | undefined;
}
