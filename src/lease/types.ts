/**
 * The waist: what every program sees, whichever ground its leases rest on.
 */

/**
 * Milliseconds as a number of 0 or more, or text of one number and one unit: `"500ms"`, `"1.5s"`, `"15s"`,
 * `"1m"`, `"2h"`. Anything else is refused with `INVALID_DURATION`.
 */
export type Duration = number | string;

/**
 * The right to a resource until a time, as one uninterrupted tenure.
 *
 * Only {@link Lease.remaining} and {@link Lease.assertHeld} are authoritative: they read the clocks when they
 * are called, and are therefore right after a blocked event loop, a stopped process or a suspended machine.
 */
export interface Lease extends AsyncDisposable {
  /** The resource's name: 1 to 512 bytes of UTF-8 without control characters. */
  readonly resource: string;
  /** Who holds the lease, `name.incarnation`: the same as {@link Leases.self} when it was taken. */
  readonly holder: string;
  /**
   * The fencing token: the same through one tenure, strictly greater in every later tenure of the resource.
   * Hand it to whatever the lease protects and let that refuse a token smaller than the greatest it has seen.
   * {@link Guarantees.token} says what its order rests on. As text or JSON it is a decimal string.
   */
  readonly token: bigint;
  /** The length in milliseconds that each renewal asks for. */
  readonly ttlMs: number;
  /**
   * Aborted, with a {@link LeaseLostError} as its reason, when the loss is noticed; also aborted by a
   * release. A convenience: when the event loop is blocked it is late. Reading this property looks at the
   * clock first.
   *
   * Under {@link Leases.lead} it also aborts when the leader is asked to step down (its campaign's signal
   * aborts, the participant closes); the lease is then still held, and renewed, until the work has settled.
   */
  readonly signal: AbortSignal;
  /**
   * Aborted when somebody asks the holder to give the resource back ({@link Leases.requestRelease}), or has
   * broken the lease ({@link Leases.break}); its reason is a {@link LeaseholdError} `RELEASE_REQUESTED` that
   * says which. The lease stays held: whether to follow is the program's choice. Anybody may ask, so it
   * proves nothing.
   *
   * @example
   * ```ts
   * const either = AbortSignal.any([lease.signal, lease.releaseRequested]);
   * ```
   */
  readonly releaseRequested: AbortSignal;
  /**
   * Milliseconds for which the lease can still be trusted, 0 when it is lost or released. Never optimistic:
   * it counts from before the request was sent, by fresh readings of two clocks. Once 0, it stays 0.
   */
  remaining(): number;
  /**
   * Returns only if the lease is held now and for at least `atLeastMs` more milliseconds (0 or more, default
   * 0).
   *
   * @throws LeaseLostError (`LEASE_LOST`) otherwise. When less than `atLeastMs` remain the lease itself goes
   * on.
   * @example
   * ```ts
   * lease.assertHeld(500); // enough for the write that follows
   * await storage.write(report, { token: lease.token });
   * ```
   */
  assertHeld(atLeastMs?: number): void;
  /**
   * Extends the lease to a full `ttlMs` from now, but not past its `maxHold`. Leases renew themselves; this
   * is for those that should not wait. Calls at the same time share one request.
   *
   * @throws LeaseLostError (`LEASE_LOST`) when the lease has run out. When no majority answered in time but
   * the lease still runs, throws `NO_QUORUM` and the lease stays as it was.
   * @example
   * ```ts
   * if (lease.remaining() < 2_000) await lease.renew();
   * ```
   */
  renew(): Promise<void>;
  /**
   * Gives the resource back. The program must have stopped using it. Idempotent, and never throws because the
   * lease was lost already. From the call on the lease counts as not held; the promise resolves when the
   * provider was told. When no member can be told, the resource becomes free when the lease runs out.
   */
  release(): Promise<void>;
  /** Plain data for logs; the token is a decimal string. */
  toJSON(): { resource: string; holder: string; token: string; remainingMs: number };
}

export interface TryAcquireOptions {
  /**
   * Length of the lease. Default and maximum: `guarantees.ttlMaxMs`; minimum: `guarantees.ttlMinMs`. A
   * shorter one frees the resource sooner after a crash, and costs more renewals.
   */
  ttl?: Duration;
  /** Ends the call; the promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Renew at a third of the TTL until released. Default true. */
  autoRenew?: boolean;
  /**
   * The tenure ends at the latest this long after it began, whatever the renewals say: it is then lost with
   * the reason `max-hold`. More than 0. Default: no bound.
   */
  maxHold?: Duration;
}

export interface AcquireOptions extends TryAcquireOptions {
  /**
   * How long to wait for a turn. Default `"1m"`; `Infinity` waits until the signal aborts; `0` does not wait
   * (then another's lease is `LEASE_HELD`, not `TIMEOUT`). An attempt that is under way at the deadline may
   * take up to 100 ms longer, and its lease is handed out.
   */
  wait?: Duration;
}

export interface LeadOptions {
  /** Length of the lease, as in {@link TryAcquireOptions.ttl}. */
  ttl?: Duration;
  /** Ends the campaign, or the leadership; `lead` then returns when the callback has settled. */
  signal?: AbortSignal;
}

export interface QueryOptions {
  /** How long the whole call may wait for answers, however many it needs. Default `"5s"`. */
  timeout?: Duration;
  /**
   * Ends the call; the promise rejects with the signal's reason. What was asked by then, to break a lease
   * say, may still be done.
   */
  signal?: AbortSignal;
}

export interface ListOptions extends QueryOptions {
  /**
   * Told when members that did not answer leave some resources unknown, with a sentence that says which
   * members; the list is then incomplete. Without it, `list` rejects with `NO_QUORUM` in that case.
   */
  onIncomplete?: (why: string) => void;
}

export interface WatchOptions {
  /** Ends the watch. */
  signal?: AbortSignal;
}

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

/** What a provider promises and what that rests on; for programs to check and for people to read. */
export interface Guarantees {
  readonly ground: "flease" | "grid" | "delta" | "core" | "memory";
  /** When two can't hold one resource: a sentence. */
  readonly exclusion: string;
  /** When the order of tokens is right: a sentence. */
  readonly token: string;
  /** When leases can be had: a sentence. */
  readonly progress: string;
  /**
   * What the three rest on, with this cluster's numbers: a sentence each, in the order in which the three
   * cite them.
   */
  readonly assumptions: readonly string[];
  /** The shortest `ttl` that may be asked for, in milliseconds. */
  readonly ttlMinMs: number;
  /** The longest `ttl` that may be asked for, in milliseconds, and the default. */
  readonly ttlMaxMs: number;
  /** How far the clocks of two participants may be apart, in milliseconds. */
  readonly maxClockSkewMs: number;
  /**
   * The longest time, in milliseconds, from a holder's crash until another can have the resource, when a
   * majority is up: for a lease of `ttlMaxMs`.
   */
  readonly takeoverMsMax: number;
}

/**
 * The leases of one participant on one ground. Leases are not re-entrant: a second `acquire` of a name in the
 * same process waits like anybody else's.
 */
export interface Leases extends AsyncDisposable {
  readonly guarantees: Guarantees;
  /**
   * The name and incarnation under which this participant holds leases. The incarnation changes at each
   * start, and after a clock fault.
   */
  readonly self: string;
  /**
   * Waits its turn and takes the lease. Callers in this process are served first in, first out.
   *
   * @throws LeaseholdError `LEASE_HELD` (with `wait: 0`), `TIMEOUT`, `NO_QUORUM`, `RESOURCES_FULL`,
   * `CLOCK_SKEW`, `INVALID_NAME`, `INVALID_DURATION`, `TTL_OUT_OF_RANGE`, `TOO_MANY_WAITERS`, `OVERLOADED`,
   * `INVALID_CONFIG` (an option that does not exist), `CLOSED`; the signal's reason when it aborts.
   * @example
   * ```ts
   * await using lease = await leases.acquire("reports/nightly", { wait: "5m" });
   * for (const report of await reportsToWrite()) {
   *   lease.assertHeld(500);
   *   await write(report, { token: lease.token });
   * }
   * ```
   */
  acquire(resource: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Takes the lease if it is free now; `undefined` if another has it (also another caller in this process, or
   * one that is about to get it). Calls for one name that wait in this process share one question to the
   * members: when it fails, all of them fail with its error.
   *
   * @throws as {@link Leases.acquire}, but for `LEASE_HELD`.
   * @example
   * ```ts
   * await using lease = await leases.tryAcquire("reports/nightly");
   * if (lease === undefined) return; // another does it
   * ```
   */
  tryAcquire(resource: string, options?: TryAcquireOptions): Promise<Lease | undefined>;
  /**
   * Who holds the resource: a hint. When too few members answer in time, the state is `unknown`.
   *
   * @throws LeaseholdError `INVALID_NAME`, `INVALID_DURATION`, `INVALID_CONFIG`, `CLOSED`.
   * @example
   * ```ts
   * const { state, holder, remainingMs = 0 } = await leases.holder("reports/nightly");
   * if (state === "held") console.log(`${holder} has it for ${remainingMs} ms, or longer if renewed`);
   * ```
   */
  holder(resource: string, options?: QueryOptions): Promise<HolderHint>;
  /**
   * The resources below a prefix that are held: hints. Sorted by name.
   *
   * @throws LeaseholdError `NO_QUORUM` when members that do not answer leave some resources unknown, unless
   * `onIncomplete` is given.
   */
  list(prefix?: string, options?: ListOptions): Promise<ResourceHint[]>;
  /**
   * The present holders below a prefix, and then each change. Tokens of one resource never go back. Changes
   * of one resource that were not read in time are merged into the newest. Lost connections are made again,
   * and the watch goes on by itself. Ends with the signal, with `close`, or when the loop is left. Hints,
   * like all answers.
   *
   * @throws LeaseholdError `WATCH_TOO_WIDE` beyond 100,000 held resources, `UNSUPPORTED`, `INVALID_NAME`,
   * `CLOSED` (also when the thread of `renewInWorker` dies while it is read).
   * @example
   * ```ts
   * for await (const { resource, state, holder } of leases.watch("reports/", { signal })) {
   *   console.log(resource, state, holder);
   * }
   * ```
   */
  watch(prefix?: string, options?: WatchOptions): AsyncIterableIterator<Change, undefined>;
  /**
   * Why can't I have it: held by whom and until when, which members cannot answer, who waits.
   *
   * @throws LeaseholdError `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  explain(resource: string, options?: QueryOptions): Promise<Explanation>;
  /**
   * Asks the holder of the resource to give it back: `lease.releaseRequested` aborts there.
   *
   * @throws LeaseholdError `NO_QUORUM`, `PERMISSION_DENIED`, `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  requestRelease(resource: string, options?: QueryOptions): Promise<HolderAction>;
  /**
   * Bars the holder of the resource from renewing, so that the lease runs out and another can have it: at the
   * end that it has now, never sooner. The holder is told as by {@link Leases.requestRelease}; its loss has
   * the reason `broken`. For a holder that hangs.
   *
   * @throws LeaseholdError `NO_QUORUM`, `PERMISSION_DENIED`, `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  break(resource: string, options?: QueryOptions): Promise<HolderAction>;
  /**
   * Campaigns for the resource, runs `work` while it is held, and campaigns again whenever the lease was
   * lost. The next campaign begins only after `work` has settled. When `work` returns, the leader steps down
   * and `lead` resolves with its value; when it throws, the lease is released and the error rethrown. A
   * `LeaseLostError` of this lease counts as the answer to its loss and is not rethrown; so does, after
   * `lease.signal` has aborted, that signal's reason or an `AbortError`.
   *
   * When `signal` aborts, `lease.signal` aborts too; the lease is held until `work` has settled, and then
   * `lead` resolves with `undefined`. It campaigns without a time limit, also while no majority answers.
   *
   * @throws as {@link Leases.acquire}, but for `LEASE_HELD`, `TIMEOUT`, `NO_QUORUM`; what `work` throws.
   * @example
   * ```ts
   * await leases.lead("scheduler", async (lease) => {
   *   while (!lease.signal.aborted) await runDueJobs(lease.token);
   * }, { signal });
   * ```
   */
  lead<T>(
    resource: string,
    work: (lease: Lease) => Promise<T>,
    options?: LeadOptions,
  ): Promise<T | undefined>;
  /**
   * Releases what is held, ends what waits (`CLOSED`) and leaves no handle open. Idempotent.
   *
   * Takes at most about three seconds, in three steps of one second at most: the work of leaders is asked to
   * stop, the resources are given back, and connections and stores are closed. A file operation that never
   * ends does not keep `close` from resolving, but keeps Node's process from ending (`docs/storage.md`).
   */
  close(): Promise<void>;
}
