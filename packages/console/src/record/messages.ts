/**
 * The messages between the console's server and its page. Times are of the server's system clock, in
 * milliseconds; each message has the time at which it was sent, so that the page's own clock may be wrong.
 */

/** A lease that somebody holds. */
export interface LeaseView {
  readonly name: string;
  readonly holder: string;
  /** Where the holder runs, as it says itself. */
  readonly label?: string;
  readonly token: string;
  readonly sinceMs: number;
  /** The lease was held already when the console began to watch, so it has been held for longer. */
  readonly isOlder?: true;
  /** It ends then at the latest, unless it is renewed. */
  readonly endsMs: number;
  /** The most time that was left at once in this tenure. */
  readonly spanMs: number;
}

/**
 * How a tenure ended, as far as a watch can tell. `released`: before its known end. `ran-out`: at an end that
 * was known shortly before. `ended`: one of these two.
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
  /** What it says of itself: `["leases", "12"]`. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** What it knows of the others; only members do. */
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
  /** The bound that clocks must keep to each other, where there is one. */
  readonly maxClockSkewMs?: number;
}

/** One message of the stream for one page. */
export type LiveMessage = { readonly nowMs: number } & (
  | {
      readonly type: "start";
      readonly allowChanges: boolean;
      readonly version: string;
      readonly endpoints: string;
    }
  /** All leases of the page's part, which take the place of what it had. */
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
  /** New ends of leases that are renewed. */
  | { readonly type: "ends"; readonly ends: readonly (readonly [name: string, endsMs: number])[] }
  | { readonly type: "ground"; readonly ground: GroundView }
  | { readonly type: "events"; readonly events: readonly EventView[] }
  /** Why what the page shows may be old; absent when it is not. */
  | { readonly type: "trouble"; readonly text?: string }
);

/** The answer about one lease: an explanation, with tokens as text. */
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

/** What one member or store keeps of a lease. */
export interface CopyView {
  readonly id: string;
  readonly address: string;
  /** The state in a word, or why there is no answer. */
  readonly text: string;
  readonly lease?: {
    readonly holder: string;
    readonly state: "live" | "over" | "released";
    readonly remainingMs: number;
  };
}

/** The body of a request to change something. */
export interface ActRequest {
  readonly action: "release" | "break" | "handover";
  readonly name: string;
  /** The waiter to whom a lease is handed over. */
  readonly to?: string;
}

/** The answer: whether the holder was told, or can no longer renew. */
export interface ActAnswer {
  readonly isDone: boolean;
}
