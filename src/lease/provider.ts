import type { Explanation, Guarantees, HolderAction, HolderHint, ResourceHint } from "./types.js";
import type { LeaseholdError, LeaseLostError, LossReason } from "./errors.js";

/**
 * One tenure as a provider granted it. The waist wraps it in a {@link Lease}.
 */
export interface Grant {
  readonly resource: string;
  readonly token: bigint;
  /**
   * Milliseconds that the tenure can still be trusted, by a fresh reading of the provider's clocks, counted
   * from before the request was sent. Never optimistic. Once it has answered 0 it answers 0 for ever.
   */
  remainingMs(): number;
  /** Why it answers 0, when the provider knows more than that it has run out. */
  readonly lossReason?: LossReason | undefined;
}

export interface AttemptRequest {
  readonly resource: string;
  readonly ttlMs: number;
  /** The provider stops trying after this long and answers `failed`. */
  readonly timeoutMs: number;
  /**
   * True when the caller has reason to think that others want the resource: its last attempt was not granted,
   * and no hint has come since.
   */
  readonly contended: boolean;
  /**
   * True when the caller will wait if it is refused, and wants to be told of a release
   * (`ProviderEvents.hint`).
   */
  readonly waiting: boolean;
  /** What others are to read of the tenure: JSON, of the size that `dataText` allows. */
  readonly data?: string | undefined;
  /** What a provider that renews by itself has to know. */
  readonly upkeep?: Upkeep;
}

/** How a grant is to be kept. */
export interface Upkeep {
  readonly autoRenew: boolean;
  /** No renewal makes the tenure longer than this, ms. `Infinity` for no bound. */
  readonly maxHoldMs: number;
}

/** A detached lease, as its handle tells of it. */
export interface Detachment {
  readonly token: bigint;
  /** 64 random bits as 16 hexadecimal digits, drawn when it was detached: what only the handle knows. */
  readonly pass: string;
}

/** How the waist ends an attempt under way. An `AbortSignal` would cost more than the attempt does. */
export interface Cancellation {
  readonly cancelled: boolean;
  /** Set by the provider for as long as the attempt lasts; called at most once. */
  onCancel: (() => void) | undefined;
}

/** Who is told how an attempt has ended, and may cancel it before. */
export interface AttemptTaker extends Cancellation {
  /** Called once. */
  told(outcome: AttemptOutcome): void;
}

/** Who is told how a renewal has ended. */
export interface RenewalTaker {
  /** Called once, with what `renew` would have answered. */
  renewed(extended: boolean): void;
}

export type AttemptOutcome =
  | { readonly kind: "granted"; readonly grant: Grant }
  /** Another holds it. Trying again before `retryInMs` is useless, unless a hint says otherwise. */
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  /** Neither is known; what the attempt may have left behind has been withdrawn. */
  | {
      readonly kind: "failed";
      readonly error: LeaseholdError;
      /** Trying again sooner than about then would be refused again. Default: whenever the waist likes. */
      readonly retryInMs?: number;
    };

/** A caller's place in the line of a resource. It keeps itself until it is left, or is gone. */
export interface Place {
  /** Resolves when nobody is before it any more; rejects when it is gone. */
  readonly first: Promise<void>;
  /** Aborts when the place has run out, and when it was left. */
  readonly gone: AbortSignal;
  /** Whoever is behind it moves up. Best effort, never rejects, idempotent. */
  leave(): Promise<void>;
}

/** Somebody wants the resource from its holder. */
export interface ReleaseRequest {
  readonly resource: string;
  /** Who asks, as that one says. */
  readonly by: string;
  /** The lease was broken as well: it will not be renewed any more. */
  readonly broken: boolean;
}

/** A watch under way. */
export interface Watching {
  /** Nothing is told any more and nothing stays behind. Idempotent. */
  stop(): void;
}

/** What a ground lets people see and do about the leases of others. Everything it tells is a hint. */
export interface Inspection {
  /**
   * Tells what is held below the prefix, and then what changes, until it is stopped: held tenures with their
   * tokens, and resources that have become free. It may tell more than once, or what nobody was told to be
   * held. Never from within this call.
   *
   * @param failed nothing more will be told, ever. Of members or stores that do not answer a watch waits
   * instead.
   */
  watch(
    prefix: string,
    told: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching;
  explain(resource: string, timeoutMs: number): Promise<Explanation>;
  requestRelease(resource: string, timeoutMs: number): Promise<HolderAction>;
  /**
   * Of those who wait for the resource one is to have it next. False when none of that name waits, or too
   * few could be told. Absent where `guarantees.handOver` is false.
   */
  favour?(resource: string, to: string, timeoutMs: number): Promise<boolean>;
  /** MUST NOT make a resource free before the end that its lease has now. */
  breakLease(resource: string, timeoutMs: number): Promise<HolderAction>;
}

/** What a provider tells the waist unasked. */
export interface ProviderEvents {
  /**
   * The tenure ended without a release (expiry noticed, clock fault, shutdown). At most once for each grant.
   */
  lost(grant: Grant, error: LeaseLostError): void;
  /** The resource may have become free: a waiter should try now. A convenience. False when nobody waits. */
  hint(resource: string): boolean;
  /** Somebody asks for the resource of a grant. */
  releaseRequested?(request: ReleaseRequest): void;
}

/**
 * The narrow port below the waist: what a ground (peers, stores, a core) has to do. Names and durations were
 * checked before they arrive here, and the waist makes at most one call of `attempt`, `renew` or `release` at
 * a time for one resource. All three must settle in a bounded time: the next call for the resource waits for
 * that.
 */
export interface Provider {
  readonly guarantees: Guarantees;
  /** The name and incarnation under which this provider holds leases. */
  readonly holder: string;
  /**
   * True when this provider renews grants without being asked, and ends them, as `AttemptRequest.upkeep`
   * says. Default false.
   */
  readonly renewsByItself?: boolean;
  /** Called once, before anything else. */
  attach(events: ProviderEvents): void;
  /** Cancelling ends the attempt soon with `failed`, after it has withdrawn what it left behind. */
  attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome>;
  /**
   * The same without a promise for each, for grounds where that would be a good part of the work. The waist
   * calls it in place of `attempt` where there is one. Tells the taker later, never from within this call.
   */
  begin?(request: AttemptRequest, taker: AttemptTaker): void;
  /**
   * True when the grant now lasts longer than before; false when that was not reached (the grant runs on
   * unchanged) or the tenure has lapsed meanwhile, which no answer re-opens.
   */
  renew(grant: Grant, ttlMs: number): Promise<boolean>;
  /** From now on the grant is kept like this. Needed where the provider renews by itself. */
  keep?(grant: Grant, upkeep: Upkeep): Promise<void>;
  /** What `begin` is to `attempt`. */
  beginRenewal?(grant: Grant, ttlMs: number, taker: RenewalTaker): void;
  /**
   * The grant is going to be released: a renewal of it that waits for its turn settles at once, with false.
   */
  forgoRenewal?(grant: Grant): void;
  /**
   * The holder has stopped: the grant is renewed no more and not given back, and others are kept out until it
   * has run out. True when the ground has noted the pass, so that `adopt` knows it, and keeps this
   * participant out as well; the waist forgets the grant then. Else the waist keeps its own callers out, and
   * releases the grant after its end. Needed where the provider renews by itself, or can `adopt`.
   */
  detach?(grant: Grant, pass: string): Promise<boolean>;
  /**
   * As `attempt`, but the detached lease with this token and this pass stands in nobody's way, and there has
   * to be one: otherwise it fails with `HANDLE_SPENT`. Of all calls for one pass at most one is granted, with
   * a token greater than the detached lease's. Absent where `guarantees.attach` is false.
   */
  adopt?(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome>;
  /**
   * The holder has stopped: frees the resource for others, best effort. `grant.remainingMs()` is 0 as soon as
   * this returns. Called once for each grant, also for one that was lost. Returns nothing when all is done by
   * then.
   */
  release(grant: Grant): Promise<void> | undefined;
  /**
   * Puts a caller at the end of the resource's line, which says nothing about who holds: the first in line
   * acquires as everybody does. A process that has stopped keeps its places for `ttlMs` and the time that the
   * ground needs to see that. Where `guarantees.fair` is `strict`, and only there.
   */
  enterLine?(resource: string, ttlMs: number, timeoutMs: number, cancellation: Cancellation): Promise<Place>;
  query(resource: string, timeoutMs: number): Promise<HolderHint>;
  /** `onIncomplete` is told why the list is incomplete; without it, an incomplete list is a `NO_QUORUM`. */
  list(prefix: string, timeoutMs: number, onIncomplete?: (why: string) => void): Promise<ResourceHint[]>;
  /** Absent where nobody can be asked. */
  readonly inspection?: Inspection | undefined;
  /** Leaves no handle open. The waist has released everything before. */
  close(): Promise<void>;
}
