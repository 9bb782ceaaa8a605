/** The waist: the API that every program uses, whichever ground its leases rest on. */
import type { ErrorCode, LeaseLostError } from "./errors.js";
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
 * The right to a resource until a deadline, as one uninterrupted tenure.
 *
 * Only {@link Lease.remaining} and {@link Lease.assertHeld} are authoritative: they read the clocks when they
 * are called, so they are right even after a blocked event loop, a stopped process or a suspended machine.
 */
export interface Lease extends AsyncDisposable {
  /**
   * The resource's name: 1 to 512 bytes of UTF-8 without control characters. A counted lease has its slot's
   * name: the name that was given, and for slots from 1 on `/~` and the slot's number.
   */
  readonly resource: string;
  /**
   * The slot of a counted lease ({@link TryAcquireOptions.limit}), from 0 to its limit - 1. A reader's slot
   * is 1 to 16 ({@link TryAcquireOptions.mode}); every other lease has 0.
   */
  readonly slot: number;
  /** The holder, `name.incarnation`: the same as {@link Leases.self} when the lease was taken. */
  readonly holder: string;
  /**
   * The fencing token: constant through one tenure, strictly greater in every later tenure of the resource.
   * Pass it to the protected resource, which should refuse a token smaller than the greatest it has seen.
   * {@link Guarantees.token} says what its order rests on. As text or JSON it is a decimal string.
   */
  readonly token: bigint;
  /** The length in milliseconds that each renewal asks for. */
  readonly ttlMs: number;
  /**
   * Aborts when the loss is noticed, with a {@link LeaseLostError} as its reason, and at a release. A
   * convenience: it is late when the event loop is blocked. Reading this property checks the clock first.
   *
   * Under {@link Leases.lead} it also aborts when the leader should step down (its campaign's signal aborts,
   * the participant closes); the lease is then still held, and renewed, until the work has settled.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when a participant asks the holder to release the resource ({@link Leases.requestRelease}), or has
   * broken the lease ({@link Leases.break}); its reason is a {@link LeaseholdError} `RELEASE_REQUESTED` that
   * says which. The lease stays held: complying is the program's choice. Anybody may ask, so a request proves
   * nothing.
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
   * @throws LeaseLostError (`LEASE_LOST`) otherwise. When less than `atLeastMs` remains, the lease itself
   * continues.
   * @throws LeaseholdError `INVALID_DURATION` when `atLeastMs` is not a number of 0 or more, whether held or
   * not.
   * @example
   * ```ts
   * lease.assertHeld(500); // enough for the write that follows
   * await storage.write(report, { token: lease.token });
   * ```
   */
  assertHeld(atLeastMs?: number): void;
  /**
   * Extends the lease to a full `ttlMs` from now, but not past its `maxHold`. Leases renew themselves; this
   * call is for programs that can't wait for that. Concurrent calls share one request.
   *
   * @throws LeaseLostError (`LEASE_LOST`) when the lease has expired. When no majority answered in time but
   * the lease is still valid, throws `NO_QUORUM` and the lease stays as it was.
   * @example
   * ```ts
   * if (lease.remaining() < 2_000) await lease.renew();
   * ```
   */
  renew(): Promise<void>;
  /**
   * Gives the resource back. The program must have stopped using it. Idempotent; never throws because the
   * lease was lost already. From the call on the lease counts as not held; the promise resolves when the
   * provider was notified. When no member can be reached, the resource becomes free when the lease expires.
   */
  release(): Promise<void>;
  /**
   * Stops renewing the lease without releasing it: a lock that outlives its process, until the lease expires.
   * From the call on it counts as not held ({@link signal} aborts with the reason `detached`), and neither
   * `release` nor `close` frees the resource. Until it expires nobody gets the resource, in this process
   * either. A renewal in flight is awaited.
   *
   * Where {@link Guarantees.attach} is true, a program with the `handle` can take over the lease until then
   * ({@link Leases.attach}).
   *
   * @returns the lease's facts, as plain data for logs and JSON. Afterwards others may have the resource.
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

/** The facts of a detached lease. */
export interface LeaseTicket {
  readonly resource: string;
  readonly holder: string;
  /** The fencing token, as a decimal string. */
  readonly token: string;
  /** Milliseconds from now during which nobody else gets the resource; others may have to wait longer. */
  readonly remainingMs: number;
  /**
   * The argument of {@link Leases.attach}: one word of letters, digits and `._~%-`, for an environment
   * variable or JSON. Absent where {@link Guarantees.attach} is false, and when the ground could not be
   * reached in time.
   */
  readonly handle?: string;
}

/**
 * Several leases as one, from {@link Leases.acquireAll}: held as long as each of them is, lost as soon as one
 * is. When one is lost the others stay held, and renewed, until they are released: the program may still be
 * using what they protect.
 */
export interface LeaseSet extends AsyncDisposable {
  /** In the order in which they were acquired, that of the bytes of their names. */
  readonly leases: readonly Lease[];
  /** The names of {@link leases}. */
  readonly resources: readonly string[];
  /**
   * Aborts when the first loss is noticed, with its {@link LeaseLostError} as reason, and at a release. A
   * convenience, like {@link Lease.signal}.
   */
  readonly signal: AbortSignal;
  /**
   * The lease of one name, with its own token.
   *
   * @throws LeaseholdError `INVALID_NAME` for a name that is not in the set.
   */
  get(resource: string): Lease;
  /** Milliseconds for which all leases can still be trusted: the minimum over them. */
  remaining(): number;
  /**
   * Returns only if all are held now and for at least `atLeastMs` more milliseconds (0 or more, default 0).
   *
   * @throws LeaseLostError (`LEASE_LOST`) otherwise, for the first that is not.
   * @throws LeaseholdError `INVALID_DURATION` as {@link Lease.assertHeld} does.
   */
  assertHeld(atLeastMs?: number): void;
  /** Releases all, as {@link Lease.release} does. */
  release(): Promise<void>;
  /** Plain data for logs; tokens are decimal strings. */
  toJSON(): { leases: ReturnType<Lease["toJSON"]>[]; remainingMs: number };
}

/** How a call for a lease ended. */
export type SettledOutcome = "acquired" | "held" | "aborted" | ErrorCode;

/** The events of a participant's own leases ({@link Leases.on}). */
export interface LeaseEvents {
  /** A call for a lease has begun; it waits until it is `settled`. One that is refused at once is neither. */
  asked: { readonly resource: string };
  /**
   * The call has ended after `waitedMs`. The outcome is `acquired`; `held` when another has the resource and
   * the call does not wait for it; `aborted` by its signal; or the code of the error that it rejects with.
   */
  settled: { readonly resource: string; readonly outcome: SettledOutcome; readonly waitedMs: number };
  /** A lease was acquired, by any call. Emitted before that call resolves. */
  acquired: { readonly lease: Lease };
  /**
   * A renewal was confirmed: `lease.remaining()` says until when, for others that must know it, such as a
   * process of its own. `slackMs`, 0 or more, is what was left of the lease by then: how near it came to
   * being lost. Not emitted for leases that a worker thread renews (`renewInWorker`).
   */
  renewed: { readonly lease: Lease; readonly slackMs: number };
  /**
   * A lease that renews itself was not renewed: a request failed, or less than a third of its `ttl` remains.
   * It is still held, and the renewal is retried. Emitted once, until a renewal succeeds.
   */
  "renewal-late": { readonly lease: Lease; readonly remainingMs: number; readonly error?: unknown };
  /** A lease was lost. Emitted when that is noticed, after `lease.signal` has aborted. */
  lost: { readonly lease: Lease; readonly error: LeaseLostError };
  /** The program ended a lease, by `release`, `detach`, `using`, `lead` or `close`. */
  released: { readonly lease: Lease };
}

/**
 * The leases of one participant on one ground. Leases are not re-entrant: a second `acquire` of a name in the
 * same process waits like any other.
 */
export interface Leases extends AsyncDisposable {
  readonly guarantees: Guarantees;
  /**
   * The name and incarnation under which this participant holds leases. The incarnation changes at each
   * start, and after a clock fault.
   */
  readonly self: string;
  /**
   * Waits for the lease and takes it. Callers in this process are served first in, first out.
   *
   * @throws LeaseholdError `LEASE_HELD` (with `wait: 0`), `TIMEOUT`, `NO_QUORUM`, `RESOURCES_FULL`,
   * `CLOCK_SKEW`, `INVALID_NAME`, `INVALID_DURATION`, `TTL_OUT_OF_RANGE`, `TOO_MANY_WAITERS`, `OVERLOADED`,
   * `INVALID_CONFIG` (an unknown option), `CLOSED`; the signal's reason when it aborts.
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
   * one that is about to get it). Concurrent calls for one name in this process share one request to the
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
   * Takes over a lease that this or another program has detached, as a lease of {@link Leases.acquire}.
   * Nobody had the resource in between, and at most one call with the same handle succeeds. It is a new
   * tenure: its greater token fences late writes of the program that detached it.
   *
   * Refused with `HANDLE_SPENT` when the lease has expired (by this machine's system clock, too), was
   * attached before, was broken, or is another's. When two call at the same time, possibly neither gets the
   * lease. A call that is aborted may have had the lease by then: it is released, and the handle is spent.
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
   * Acquires several resources, 1 to 64, and resolves when it has them all: one set, lost as soon as one
   * lease is lost. A name given twice counts once. `wait` bounds the whole call; the other options apply to
   * each lease. When one can't be acquired, those acquired before are released, the last first, and the call
   * rejects with that one's error.
   *
   * Every call acquires in the same order, that of the names' bytes in UTF-8. So calls of `acquireAll` never
   * deadlock with each other, in this process or others. A program that acquires one resource while it has
   * another can still deadlock: two that do so in different orders both wait until their `wait` is over.
   *
   * @throws as {@link Leases.acquire}; `INVALID_NAME` for no name or too many; `LEASE_LOST` when one was lost
   * while the call waited for another (with `autoRenew: false` it expires).
   * @example
   * ```ts
   * await using both = await leases.acquireAll(["accounts/7", "accounts/12"], { wait: "10s" });
   * both.assertHeld(500); // of each
   * await storage.write(report, { token: both.get("accounts/7").token });
   * ```
   */
  acquireAll(resources: readonly string[], options?: AcquireAllOptions): Promise<LeaseSet>;
  /**
   * Acquires, runs `work`, releases, and resolves with the value of `work`. Several names are acquired as by
   * {@link Leases.acquireAll}. `work` does not start when the lease is lost by then.
   *
   * `lease.signal` aborts when the lease is lost, and also when `options.signal` aborts or this participant
   * is closed: it is then still held until `work` has settled. The value of work that outlived its lease
   * can't be trusted: `using` then rejects with the {@link LeaseLostError}. An error of `work` is rethrown,
   * except that an `AbortError` after a loss is reported as the loss. The release is awaited in every case.
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
   * The holder of the resource: a hint. When too few members answer in time, the state is `unknown`.
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
   * The held resources below a prefix, sorted by name: hints.
   *
   * @throws LeaseholdError `NO_QUORUM` when members that do not answer leave some resources unknown, unless
   * `onIncomplete` is given; `WATCH_TOO_WIDE` beyond a million resources, or 100,000 in one store.
   */
  list(prefix?: string, options?: ListOptions): Promise<ResourceHint[]>;
  /**
   * The present holders below a prefix, and then each change. Tokens of one resource never go back. Changes
   * of one resource that were not read in time are merged into the newest. The watch reconnects by itself and
   * continues. It ends with the signal, with `close`, or when the loop ends. Hints, like all answers.
   *
   * @throws LeaseholdError `WATCH_TOO_WIDE` beyond 100,000 resources, `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`
   * (also when the thread of `renewInWorker` dies while it is read).
   * @example
   * ```ts
   * for await (const { resource, state, holder } of leases.watch("reports/", { signal })) {
   *   console.log(resource, state, holder);
   * }
   * ```
   */
  watch(prefix?: string, options?: WatchOptions): AsyncIterableIterator<Change, undefined>;
  /**
   * The leader of a name, and each change: the first change reported is the present holder, or that the
   * resource is free. It ends with the signal, with `close`, or when the loop ends; it counts as one of 16
   * watches until then. A hint: the time between two leaders may go unreported.
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
   * Calls `listener` at each such event of this participant's leases. Returns a function that removes the
   * listener. Listeners run synchronously, so they should be short. An error that one throws, or a promise of
   * its that rejects, only causes a process warning (`LeaseholdWarning`). Up to 100 listeners per event.
   *
   * The same events are published on Node's `diagnostics_channel`, for all participants of the process:
   * `leasehold:asked`, `leasehold:settled`, `leasehold:acquired`, `leasehold:renewed`,
   * `leasehold:renewal-late`, `leasehold:lost`, `leasehold:released`.
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
   * Why a resource can't be acquired: its holder and its end, the members that don't answer, the waiters.
   *
   * @throws LeaseholdError `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  explain(resource: string, options?: QueryOptions): Promise<Explanation>;
  /**
   * Asks the holder of the resource to release it: `lease.releaseRequested` aborts there.
   *
   * @throws LeaseholdError `NO_QUORUM`, `PERMISSION_DENIED`, `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  requestRelease(resource: string, options?: QueryOptions): Promise<HolderAction>;
  /**
   * Asks the holder of the resource to release it, as {@link Leases.requestRelease} does, so that a chosen
   * waiter has it next. The members notify that waiter of the release before all others, and give it time to
   * come; it becomes the holder by its own acquisition, with a token of its own. A holder may call it for its
   * own lease.
   *
   * @param to a participant that waits for the resource ({@link Leases.acquire}): its label, or the host or
   * the note in it, its `holder`, or that without the incarnation. When several match, the one that has
   * waited longest.
   * @throws LeaseholdError `NOT_WAITING`: nothing has changed. `UNSUPPORTED` where {@link
   * Guarantees.handOver} is false. `NO_QUORUM`, `PERMISSION_DENIED`, `INVALID_NAME`, `CLOSED`.
   */
  handOver(resource: string, to: string, options?: QueryOptions): Promise<HolderAction>;
  /**
   * Prevents the holder of the resource from renewing, so that the lease expires and another can have it: at
   * its present end, never sooner. The holder is notified as by {@link Leases.requestRelease}; its loss has
   * the reason `broken`. For a holder that hangs.
   *
   * @throws LeaseholdError `NO_QUORUM`, `PERMISSION_DENIED`, `UNSUPPORTED`, `INVALID_NAME`, `CLOSED`.
   */
  break(resource: string, options?: QueryOptions): Promise<HolderAction>;
  /**
   * Campaigns for the resource, runs `work` while it is held, and campaigns again whenever the lease was
   * lost. The next campaign begins only after `work` has settled. When `work` returns, the leader steps down
   * and `lead` resolves with its value; when it throws, the lease is released and the error rethrown. A
   * `LeaseLostError` of this lease is taken as the end of that term and is not rethrown; the same holds,
   * after `lease.signal` has aborted, for that signal's reason and for an `AbortError`.
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
   * Releases all leases, ends all waits (`CLOSED`) and leaves no handle open. Idempotent.
   *
   * Takes at most about three seconds, in three steps of one second at most: leaders' work is asked to stop,
   * the resources are released, and connections and stores are closed. A file operation that never ends does
   * not keep `close` from resolving, but keeps Node's process from ending (`docs/storage.md`).
   */
  close(): Promise<void>;
}
