/**
 * The messages between the console's server and its page. Times are by the server's system clock, in
 * milliseconds. Each message contains the time at which it was sent, so the page's own clock may be wrong.
 */

/** A lease that is held. */
export interface LeaseView {
  readonly name: string;
  readonly holder: string;
  /** The holder's own description of where it runs. */
  readonly label?: string;
  readonly token: string;
  readonly sinceMs: number;
  /** The lease was held when the console began to watch, so its tenure began before `sinceMs`. */
  readonly isOlder?: true;
  /** The latest end, unless the lease is renewed. */
  readonly endsMs: number;
  /** The longest remaining time seen in this tenure. */
  readonly spanMs: number;
}

/**
 * How a tenure ended, as far as a watch can know. `released`: before its known end. `ran-out`: at an end that
 * was confirmed shortly before. `ended`: one of these two.
 */
export type TenureEnd = "released" | "ran-out" | "passed-on" | "ended";

/** The time for which one holder had a lease without interruption. */
export interface TenureView {
  readonly holder: string;
  readonly label?: string;
  readonly token: string;
  readonly sinceMs: number;
  readonly isOlder?: true;
  readonly untilMs?: number;
  readonly end?: TenureEnd;
}

export interface EventView {
  readonly number: number;
  readonly atMs: number;
  readonly kind: "acquired" | TenureEnd | "ground" | "trouble" | "action";
  readonly text: string;
  readonly name?: string;
}

/** A member, a store or a server. */
export interface PartView {
  readonly id: string;
  readonly address: string;
  readonly state: "ready" | "waiting" | "bad" | "silent";
  /** The state in words. */
  readonly text: string;
  /** What the part reports about itself: `["leases", "12"]`. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** What the member knows of its peers; only members have peers. */
  readonly peers?: readonly PeerView[];
}

export interface PeerView {
  readonly id: string;
  readonly isConnected: boolean;
  readonly roundTripMs?: number;
  readonly skewMs?: number;
  readonly skewErrorMs?: number;
}

export interface GroundView {
  readonly kind: "members" | "stores" | "servers" | "memory";
  /** Whether leases can be acquired and renewed now. */
  readonly isAble: boolean;
  readonly summary: string;
  readonly parts: readonly PartView[];
  /** The maximum clock skew, where there is one. */
  readonly maxClockSkewMs?: number;
}

/** One message of a page's stream. */
export type LiveMessage = { readonly nowMs: number } & (
  | {
      readonly type: "start";
      readonly allowChanges: boolean;
      readonly version: string;
      readonly endpoints: string;
    }
  /** All leases of the page's part. They replace the previous ones. */
  | {
      readonly type: "all";
      readonly leases: readonly LeaseView[];
      readonly total: number;
      readonly before: number;
    }
  | {
      readonly type: "changes";
      readonly held: readonly LeaseView[];
      readonly gone: readonly string[];
      readonly total: number;
    }
  /** New ends of renewed leases. */
  | { readonly type: "ends"; readonly ends: readonly (readonly [name: string, endsMs: number])[] }
  | { readonly type: "ground"; readonly ground: GroundView }
  | { readonly type: "events"; readonly events: readonly EventView[] }
  /** Why the page may be out of date; absent when it is not. */
  | { readonly type: "trouble"; readonly text?: string }
);

/** The answer for one lease: an explanation, with tokens as text. */
export interface LeaseAnswer {
  readonly nowMs: number;
  readonly state: "held" | "free" | "unknown";
  readonly holder?: string;
  readonly label?: string;
  readonly token?: string;
  readonly remainingMs?: number;
  readonly data?: unknown;
  readonly isBroken: boolean;
  readonly waiting: number;
  readonly reasons: readonly string[];
  readonly copies: readonly CopyView[];
  readonly tenures: readonly TenureView[];
}

/** One member's or store's copy of a lease. */
export interface CopyView {
  readonly id: string;
  readonly address: string;
  /** The state in a word, or the reason why there is no answer. */
  readonly text: string;
  readonly lease?: {
    readonly holder: string;
    readonly state: "live" | "over" | "released";
    readonly remainingMs: number;
  };
}

/** The body of a request for a change. */
export interface ActRequest {
  readonly action: "release" | "break" | "handover";
  readonly name: string;
  /** The waiter that gets the lease. */
  readonly to?: string;
}

/** The answer: whether the holder was notified, or can no longer renew. */
export interface ActAnswer {
  readonly isDone: boolean;
}
