import type { Explanation, Guarantees, HolderAction, HolderHint, ResourceHint } from "./types.js";
import type { LeaseholdError, LeaseLostError, LossReason } from "./errors.js";

/**
 * One tenure as a provider granted it. The waist wraps it in a {@link Lease}.
 */
export interface Grant {
  readonly resource: string;
  readonly token: bigint;
  /**
   * Milliseconds for which the tenure can still be trusted, by a fresh reading of the provider's clocks,
   * counted from before the request was sent. Never optimistic. Once 0, it stays 0.
   */
  remainingMs(): number;
  /** Why it answers 0, when the provider knows more than that the tenure has expired. */
  readonly lossReason?: LossReason | undefined;
}

export interface AttemptRequest {
  readonly resource: string;
  readonly ttlMs: number;
  /** Timeout of the attempt, after which the provider answers `failed`. */
  readonly timeoutMs: number;
  /**
   * True when others probably want the resource: the caller's last attempt was not granted, and no hint has
   * arrived since.
   */
  readonly contended: boolean;
  /** True when the caller waits if it is refused, and wants a hint at a release (`ProviderEvents.hint`). */
  readonly waiting: boolean;
  /** The tenure's data for others to read: JSON within the limits of `dataText`. */
  readonly data?: string | undefined;
  /** For a provider that renews by itself. */
  readonly upkeep?: Upkeep;
}

/** How a grant is kept. */
export interface Upkeep {
  readonly autoRenew: boolean;
  /** No renewal makes the tenure longer than this, ms. `Infinity` for no bound. */
  readonly maxHoldMs: number;
}

/** A detached lease, as its handle describes it. */
export interface Detachment {
  readonly token: bigint;
  /** 64 random bits as 16 hexadecimal digits, drawn when it was detached: a secret of the handle. */
  readonly pass: string;
}

/** How the waist cancels an attempt in flight. An `AbortSignal` would cost more than the attempt. */
export interface Cancellation {
  readonly cancelled: boolean;
  /** Set by the provider while the attempt lasts; called at most once. */
  onCancel: (() => void) | undefined;
}

/** Receives the outcome of an attempt, and may cancel it before. */
export interface AttemptTaker extends Cancellation {
  /** Called once. */
  settled(outcome: AttemptOutcome): void;
}

/** Receives the result of a renewal. */
export interface RenewalTaker {
  /** Called once, with what `renew` would have returned. */
  renewed(extended: boolean): void;
}

export type AttemptOutcome =
  | { readonly kind: "granted"; readonly grant: Grant }
  /** Another holds it. Trying again before `retryInMs` is useless, unless a hint arrives. */
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  /** The outcome is unknown; anything that the attempt left behind has been withdrawn. */
  | {
      readonly kind: "failed";
      readonly error: LeaseholdError;
      /**
       * Milliseconds before which another attempt would probably be refused too. Default: the waist decides.
       */
      readonly retryInMs?: number;
    };

/**
 * A caller's place in the queue for a resource. It renews itself until the caller leaves or the place is
 * gone.
 */
export interface Place {
  /** Resolves when the place is first in the queue; rejects when it is gone. */
  readonly first: Promise<void>;
  /** Aborts when the place has expired, and when the caller left. */
  readonly gone: AbortSignal;
  /** The places behind it move up. Best effort, never rejects, idempotent. */
  leave(): Promise<void>;
}

/** A participant wants the resource from its holder. */
export interface ReleaseRequest {
  readonly resource: string;
  /** The participant that asks, by its own account. */
  readonly by: string;
  /** The lease was broken as well: it can't be renewed any more. */
  readonly broken: boolean;
}

/** An open watch. */
export interface Watching {
  /** After it nothing is reported and no resource leaks. Idempotent. */
  stop(): void;
}

/** The queries and actions that a ground offers for the leases of others. Every answer is a hint. */
export interface Inspection {
  /**
   * Reports what is held below the prefix, and then what changes, until it is stopped: held tenures with
   * their tokens, and resources that have become free. It may report something twice, or as free what was
   * never reported as held. It never reports from within this call.
   *
   * @param failed the watch has ended: nothing more is reported. Members or stores that don't answer are no
   * failure: the watch waits for them.
   */
  watch(
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching;
  explain(resource: string, timeoutMs: number): Promise<Explanation>;
  requestRelease(resource: string, timeoutMs: number): Promise<HolderAction>;
  /**
   * Chooses, among those that wait for the resource, the one that has it next. False when no waiter has that
   * name, or too few members could be notified. Absent where `guarantees.handOver` is false.
   */
  favour?(resource: string, to: string, timeoutMs: number): Promise<boolean>;
  /** MUST NOT free a resource before the present end of its lease. */
  breakLease(resource: string, timeoutMs: number): Promise<HolderAction>;
}

/** Notifications from a provider to the waist. */
export interface ProviderEvents {
  /**
   * The tenure ended without a release (expiry noticed, clock fault, shutdown). At most once for each grant.
   */
  lost(grant: Grant, error: LeaseLostError): void;
  /** The resource may have become free: a waiter should try now. Best effort. False when nobody waits. */
  hint(resource: string): boolean;
  /** A participant asks for the resource of a grant. */
  releaseRequested?(request: ReleaseRequest): void;
}

/**
 * The narrow port below the waist, which every ground (peers, stores, a core) implements. The waist checks
 * names and durations first, and makes at most one call of `attempt`, `renew` or `release` at a time for one
 * resource. All three MUST settle in a bounded time: the next call for the resource waits for it.
 */
export interface Provider {
  readonly guarantees: Guarantees;
  /** The name and incarnation under which this provider holds leases. */
  readonly holder: string;
  /**
   * True when this provider renews grants unasked, and ends them, as `AttemptRequest.upkeep` says. Default
   * false.
   */
  readonly renewsByItself?: boolean;
  /** Called once, first of all. */
  attach(events: ProviderEvents): void;
  /** Cancelling ends the attempt soon with `failed`, after anything it left behind was withdrawn. */
  attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome>;
  /**
   * `attempt` without a promise, for grounds where promises would be a good part of the work. The waist
   * prefers it over `attempt`. It calls the taker later, never from within this call.
   */
  begin?(request: AttemptRequest, taker: AttemptTaker): void;
  /**
   * True when the grant now lasts longer than before. False when that failed (the grant runs on unchanged),
   * or when the tenure has expired meanwhile, which no answer undoes.
   */
  renew(grant: Grant, ttlMs: number): Promise<boolean>;
  /** Changes how the grant is kept. Needed where the provider renews by itself. */
  keep?(grant: Grant, upkeep: Upkeep): Promise<void>;
  /** `renew` without a promise, as `begin` is for `attempt`. */
  beginRenewal?(grant: Grant, ttlMs: number, taker: RenewalTaker): void;
  /** The grant is about to be released: a renewal of it that is still queued settles at once, with false. */
  forgoRenewal?(grant: Grant): void;
  /**
   * The holder has stopped: the grant is neither renewed nor released, and others are kept out until it has
   * expired. True when the ground has stored the pass, so that `adopt` knows it, and keeps this participant
   * out as well; the waist then forgets the grant. Otherwise the waist keeps its own callers out, and
   * releases the grant after its end. Needed where the provider renews by itself, or has `adopt`.
   */
  detach?(grant: Grant, pass: string): Promise<boolean>;
  /**
   * As `attempt`, but takes over the detached lease with this token and this pass, which must exist:
   * otherwise it fails with `HANDLE_SPENT`. Of all calls with one pass at most one is granted, with a token
   * greater than the detached lease's. Absent where `guarantees.attach` is false.
   */
  adopt?(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome>;
  /**
   * The holder has stopped: frees the resource for others, best effort. `grant.remainingMs()` is 0 as soon as
   * this returns. Called once for each grant, also for one that was lost. Returns `undefined` when the
   * release is already done.
   *
   * The system time, or a clock fault, may have ended a grant before its time by the steady clock. Until then
   * the program may rely on what it was promised, so no participant MUST get the resource.
   *
   * @param isUnused no program has had the grant: it is released although a clock has ended it early
   */
  release(grant: Grant, isUnused?: boolean): Promise<void> | undefined;
  /**
   * Puts a caller at the end of the resource's queue. The queue is independent of exclusion: the first in it
   * acquires like everybody else. A stopped process keeps its places for `ttlMs` and the time that the ground
   * needs to notice. Where `guarantees.fair` is `strict`, and only there.
   */
  enterQueue?(resource: string, ttlMs: number, timeoutMs: number, cancellation: Cancellation): Promise<Place>;
  query(resource: string, timeoutMs: number): Promise<HolderHint>;
  /**
   * `onIncomplete` gets the reason why the list is incomplete; without it, an incomplete list is a
   * `NO_QUORUM`.
   */
  list(prefix: string, timeoutMs: number, onIncomplete?: (why: string) => void): Promise<ResourceHint[]>;
  /** Absent where a ground can't be queried. */
  readonly inspection?: Inspection | undefined;
  /** Leaves no handle open. The waist has released everything before. */
  close(): Promise<void>;
}
