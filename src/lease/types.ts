/**
 * The waist: what every program sees, whichever ground its leases rest on.
 */
import type { LeaseLostError } from "./errors.js";
import type { Guarantees } from "./guarantees.js";
import type { Change, Explanation, HolderAction, HolderHint, LeaderObserver, ResourceHint } from "./hints.js";
import type {
  AcquireAllOptions,
  AcquireOptions,
  LeaderOptions,
  LeadOptions,
  ListOptions,
  QueryOptions,
  TenureOptions,
  TryAcquireOptions,
  WatchOptions,
} from "./options.js";

export type * from "./guarantees.js";
export type * from "./hints.js";
export type * from "./json-value.js";
export type * from "./options.js";

/**
 * The right to a resource until a time, as one uninterrupted tenure.
 *
 * Only {@link Lease.remaining} and {@link Lease.assertHeld} are authoritative: they read the clocks when they
 * are called, and are therefore right after a blocked event loop, a stopped process or a suspended machine.
 */
export interface Lease extends AsyncDisposable {
  /**
   * The resource's name: 1 to 512 bytes of UTF-8 without control characters. Of a counted lease it is the
   * slot's: the name that was given, and for slots from 1 on `/~` and the slot's number.
   */
  readonly resource: string;
  /**
   * Of a counted lease ({@link TryAcquireOptions.limit}) which slot it has, from 0 to its limit - 1. A
   * reader's slot is 1 to 16 ({@link TryAcquireOptions.mode}); of every other lease it is 0.
   */
  readonly slot: number;
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
   * @throws LeaseholdError `INVALID_DURATION` when `atLeastMs` is no number of 0 or more, held or not.
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
  /**
   * Stops to renew the lease and does not give it back: a lock that outlives its process, until the lease
   * runs out by itself. From the call on it counts as not held ({@link signal} aborts with the reason
   * `detached`), and neither `release` nor `close` frees the resource. Until then nobody gets the resource,
   * in this process either. Waits for a renewal that is under way.
   *
   * Where {@link Guarantees.attach} is true, whoever has the `handle` can go on with it until then
   * ({@link Leases.attach}).
   *
   * @returns what is known of it, as plain data for logs and JSON. Afterwards others may have the resource.
   * @throws LeaseLostError (`LEASE_LOST`) when it is not held.
   * @example
   * ```ts
   * const { token, remainingMs } = await lease.detach();
   * console.log(`nobody deploys for ${remainingMs} ms after token ${token}`);
   * ```
   */
  detach(): Promise<LeaseTicket>;
  /** Plain data for logs; the token is a decimal string. */
  toJSON(): { resource: string; holder: string; token: string; remainingMs: number };
}

/** What is known of a lease that was detached. */
export interface LeaseTicket {
  readonly resource: string;
  readonly holder: string;
  /** The fencing token, as a decimal string. */
  readonly token: string;
  /** Milliseconds from now for which nobody else gets the resource; others may have to wait longer. */
  readonly remainingMs: number;
  /**
   * What {@link Leases.attach} takes: one word of letters, digits and `._~%-`, for an environment variable or
   * JSON. Absent where {@link Guarantees.attach} is false, and when the ground could not be told in time.
   */
  readonly handle?: string;
}

/**
 * Several leases in one hand, from {@link Leases.acquireAll}: held as long as every one of them is, lost as
 * soon as one is. When one is lost the others stay held, and renewed, until they are released: the program
 * may still be at work on what they protect.
 */
export interface LeaseSet extends AsyncDisposable {
  /** In the order in which they were acquired, that of the bytes of their names. */
  readonly leases: readonly Lease[];
  /** The names of {@link leases}. */
  readonly resources: readonly string[];
  /**
   * Aborted when the loss of the first is noticed, with its {@link LeaseLostError} as reason; also by a
   * release. A convenience, as {@link Lease.signal}.
   */
  readonly signal: AbortSignal;
  /**
   * The lease of one name: each has a token of its own.
   *
   * @throws LeaseholdError `INVALID_NAME` for a name that is not in the set.
   */
  get(resource: string): Lease;
  /** Milliseconds for which all can still be trusted: the least of what remains of each. */
  remaining(): number;
  /**
   * Returns only if all are held now and for at least `atLeastMs` more milliseconds (0 or more, default 0).
   *
   * @throws LeaseLostError (`LEASE_LOST`) otherwise, for the first that is not.
   * @throws LeaseholdError `INVALID_DURATION` as {@link Lease.assertHeld} does.
   */
  assertHeld(atLeastMs?: number): void;
  /** Gives all back, as {@link Lease.release} does. */
  release(): Promise<void>;
  /** Plain data for logs; tokens are decimal strings. */
  toJSON(): { leases: ReturnType<Lease["toJSON"]>[]; remainingMs: number };
}

/** What a participant tells of its own leases, to those who listen ({@link Leases.on}). */
export interface LeaseEvents {
  /** A lease was acquired, by whatever call. Told before that call resolves. */
  acquired: { readonly lease: Lease };
  /**
   * A lease that renews itself was not renewed: a request failed, or less than a third of its `ttl` remains.
   * It is still held, and tried again. Once, until a renewal succeeds.
   */
  "renewal-late": { readonly lease: Lease; readonly remainingMs: number; readonly error?: unknown };
  /** A lease was lost. Told when that is noticed, after `lease.signal` has aborted. */
  lost: { readonly lease: Lease; readonly error: LeaseLostError };
  /** The program has ended a lease, by `release`, `detach`, `using`, `lead` or `close`. */
  released: { readonly lease: Lease };
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
   * Goes on with a lease that this or another program has detached, as a lease of {@link Leases.acquire}.
   * Nobody had the resource in between, and of all that call with one handle at most one gets it. It is a new
   * tenure: its greater token fences what the program that detached it may still write.
   *
   * Refused with `HANDLE_SPENT` when the lease has run out (by this machine's system clock, too), was
   * attached before, broken, or is another's. When two call at the same time, neither may get the lease. A
   * call that is aborted may have had the lease by then: it is given back, and the handle is spent.
   *
   * @throws LeaseholdError `INVALID_HANDLE`, `HANDLE_SPENT`; `UNSUPPORTED` where {@link Guarantees.attach} is
   * false, before anything is sent; else as {@link Leases.tryAcquire}.
   * @example
   * ```ts
   * await using onStores = await open("delta+memory:deploys");
   * const held = await onStores.acquire("deploys/web-7");
   * const { handle } = await held.detach(); // for another program: process.env, a message, a file
   * if (handle === undefined) throw new Error("it runs out, and nobody can attach it");
   * await using again = await onStores.attach(handle);
   * console.log(again.resource, again.token > held.token); // deploys/web-7 true
   * ```
   */
  attach(handle: string, options?: TenureOptions): Promise<Lease>;
  /**
   * Acquires several resources, 1 to 64, and answers when it has them all: one handle, lost as soon as one is
   * lost. A name that is given twice counts once. `wait` is for all together, and the other options are for
   * each. When one is not to be had those acquired before are released, the last first, and the call rejects
   * with that one's error.
   *
   * Every call acquires in the same order, that of the names' bytes in UTF-8. So calls of `acquireAll` never
   * wait for each other in a circle, in this process or others. That holds for no program that acquires one
   * resource while it has another: two that do so in different orders both wait, until their `wait` is over.
   *
   * @throws as {@link Leases.acquire}; `INVALID_NAME` for no name or too many; `LEASE_LOST` when one was lost
   * while the call waited for another (with `autoRenew: false` it runs out).
   * @example
   * ```ts
   * await using both = await leases.acquireAll(["accounts/7", "accounts/12"], { wait: "10s" });
   * both.assertHeld(500); // of each
   * await storage.write(report, { token: both.get("accounts/7").token });
   * ```
   */
  acquireAll(resources: readonly string[], options?: AcquireAllOptions): Promise<LeaseSet>;
  /**
   * Acquires, runs `work`, releases, and resolves with the value of `work`. With several names as
   * {@link Leases.acquireAll}. `work` does not begin when the lease is lost by then.
   *
   * `lease.signal` aborts when the lease is lost, and also when `options.signal` aborts or this participant
   * is closed: it is then still held until `work` has settled. A value of work that outlived its lease is
   * not to be trusted: `using` then rejects with the {@link LeaseLostError}. What `work` throws is rethrown,
   * but for an `AbortError` after a loss, which is the loss. The release is awaited in every case.
   *
   * @throws as {@link Leases.acquire}; `LEASE_LOST`; what `work` throws.
   * @example
   * ```ts
   * const written = await leases.using("reports/nightly", { wait: "5m" }, async (lease) => {
   *   await storage.write(report, { token: lease.token });
   *   return report.length;
   * });
   * ```
   * @example
   * ```ts
   * await leases.using(["accounts/7", "accounts/12"], async (both) => {
   *   for (const { token } of both.leases) await storage.write(report, { token });
   * });
   * ```
   */
  using<T>(resource: string, work: (lease: Lease) => T | Promise<T>): Promise<T>;
  using<T>(
    resource: string,
    options: AcquireOptions | undefined,
    work: (lease: Lease) => T | Promise<T>,
  ): Promise<T>;
  using<T>(resources: readonly string[], work: (leases: LeaseSet) => T | Promise<T>): Promise<T>;
  using<T>(
    resources: readonly string[],
    options: AcquireAllOptions | undefined,
    work: (leases: LeaseSet) => T | Promise<T>,
  ): Promise<T>;
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
   * `onIncomplete` is given; `WATCH_TOO_WIDE` beyond a million resources, or 100,000 in one store.
   */
  list(prefix?: string, options?: ListOptions): Promise<ResourceHint[]>;
  /**
   * The present holders below a prefix, and then each change. Tokens of one resource never go back. Changes
   * of one resource that were not read in time are merged into the newest. Lost connections are made again,
   * and the watch goes on by itself. Ends with the signal, with `close`, or when the loop is left. Hints,
   * like all answers.
   *
   * @throws LeaseholdError `WATCH_TOO_WIDE` beyond 100,000 resources, `UNSUPPORTED`, `INVALID_NAME`,
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
   * Who leads, and each change: the first thing told is who holds the resource now, or that it is free. Ends
   * with the signal, with `close`, or when the loop is left; counts as one of 16 watches until then. A hint:
   * between two leaders neither need be told to be free.
   *
   * @throws LeaseholdError as {@link Leases.watch}.
   * @example
   * ```ts
   * const leader = leases.leader("scheduler", { signal });
   * for await (const { state, holder, token } of leader) {
   *   console.log(state === "held" ? `${holder} leads, token ${token}` : "nobody leads");
   * }
   * ```
   */
  leader(resource: string, options?: LeaderOptions): LeaderObserver;
  /**
   * Calls `listener` at each such event of this participant's leases, and returns what takes it away again.
   * Listeners run at once, where it happens: they should be short. What one throws, or a promise of
   * its that rejects, harms nothing; it becomes a warning of the process (`LeaseholdWarning`). Up to 100 for
   * one event.
   *
   * The same is published on Node's `diagnostics_channel`, for all participants of the process:
   * `leasehold:acquired`, `leasehold:renewal-late`, `leasehold:lost`, `leasehold:released`.
   *
   * @throws LeaseholdError `INVALID_CONFIG` for another event, `TOO_MANY_WAITERS`.
   * @example
   * ```ts
   * const stop = leases.on("lost", ({ lease, error }) => console.warn(lease.resource, error.reason));
   * stop();
   * ```
   */
  on<Name extends keyof LeaseEvents>(name: Name, listener: (event: LeaseEvents[Name]) => void): () => void;
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
   * Asks the holder of the resource to give it back, as {@link Leases.requestRelease} does, so that one of
   * those who wait for it has it next. The members tell that one of the release before all others, and leave
   * it the time to come; it becomes the holder by its own acquisition, with a token of its own. A holder may
   * call it for its own lease.
   *
   * @param to a participant that waits for the resource ({@link Leases.acquire}): its label, or the host or
   * the note in it, its `holder`, or that without the incarnation. Of several the one that has waited longest
   * @throws LeaseholdError `NOT_WAITING`: nothing has changed. `UNSUPPORTED` where
   * {@link Guarantees.handOver} is false. `NO_QUORUM`, `PERMISSION_DENIED`, `INVALID_NAME`, `CLOSED`.
   */
  handOver(resource: string, to: string, options?: QueryOptions): Promise<HolderAction>;
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
