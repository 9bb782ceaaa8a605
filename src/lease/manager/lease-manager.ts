import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { keptAlive } from "../../common/keep-alive.js";
import { backOffBoundMs } from "../../common/back-off.js";
import { acquireSpec, type AcquireSpec, waitMsOf } from "./acquire-spec.js";
import { Contender } from "./contender.js";
import { type ErrorCode, LeaseholdError, LeaseLostError } from "../errors.js";
import { Detached } from "./detached.js";
import { Events } from "./events.js";
import { HeldLease, type LeaseKeeper } from "./held-lease.js";
import { lead } from "./lead.js";
import { acquireInOrder, type AcquireOne, type HeldLeaseSet, inOrder } from "./lease-set.js";
import type { LocalQueue } from "./local-queue.js";
import { LocalQueues } from "./local-queues.js";
import type { Timer, World } from "../../common/ports.js";
import type { AttemptOutcome, Grant, Provider, ProviderEvents, ReleaseRequest } from "../provider.js";
import type { CallWithOptions } from "../option-names.js";
import { Questions } from "./questions.js";
import type {
  AcquireOptions,
  Change,
  Explanation,
  Guarantees,
  HolderAction,
  HolderHint,
  LeaderObserver,
  LeaderOptions,
  LeadOptions,
  Lease,
  LeaseEvents,
  Leases,
  LeaseSet,
  ListOptions,
  QueryOptions,
  ResourceHint,
  TryAcquireOptions,
  WatchOptions,
} from "../types.js";
import { using } from "./work.js";

/**
 * However little time the caller has left, an attempt gets this much: less could not succeed on any network.
 */
const attemptTimeoutMsMin = 100;

/** The least sleep between two attempts, so that no provider can make a busy loop. */
const retryMsMin = 1;

/** Without an answer the sleep before the next attempt is random, its bound doubles up to the maximum. */
const backoffMsBase = 50;
const backoffMsMax = 2_000;

/**
 * How long `close` waits for the work of leaders to settle, then for resources to be given back, then for the
 * provider to close.
 */
const closeStepMs = 1_000;

/** Errors that may pass by themselves; with any other an attempt is not repeated. */
const retryable: ReadonlySet<ErrorCode> = new Set([
  "NO_QUORUM",
  "TIMEOUT",
  "RESOURCES_FULL",
  "OVERLOADED",
  "CLOCK_SKEW",
  "UNREACHABLE",
  "LEASE_BROKEN",
]);

/** A lease that has not been given back yet, and the queue in which it has the turn. */
interface Tenancy {
  readonly lease: HeldLease;
  readonly queue: LocalQueue;
}

/** The arguments of `using` after the name, or the names. */
type UsingArguments<Held, T> =
  | readonly [work: (held: Held) => T | Promise<T>]
  | readonly [options: AcquireOptions | undefined, work: (held: Held) => T | Promise<T>];

/**
 * The waist over one provider: checks what callers give, queues them, repeats attempts, renews and ends
 * leases. It makes at most one call of `attempt`, `renew` or `release` at a time for one resource.
 */
export class LeaseManager implements Leases, LeaseKeeper, ProviderEvents {
  readonly provider: Provider;
  readonly world: World;
  readonly events: Events;

  readonly #queues: LocalQueues;
  readonly #contenders = new Set<Contender>();
  readonly #held = new Map<Grant, Tenancy>();
  readonly #detached = new Detached((grant) => this.#releaseGrant(grant));
  readonly #questions: Questions;
  #closing: Promise<void> | undefined;

  constructor(provider: Provider, world: World) {
    this.provider = provider;
    this.world = world;
    this.events = new Events(world.hooks);
    this.#queues = new LocalQueues(world.keepAlive);
    this.#questions = new Questions(provider, world);
    provider.attach(this);
  }

  get guarantees(): Guarantees {
    return this.provider.guarantees;
  }

  get self(): string {
    return this.provider.holder;
  }

  async acquire(resource: string, options: AcquireOptions = {}): Promise<Lease> {
    const spec = acquireSpec(this.guarantees, "acquire", resource, options);
    return this.#acquire(spec, waitMsOf(options));
  }

  async acquireAll(resources: readonly string[], options: AcquireOptions = {}): Promise<LeaseSet> {
    return this.#acquireAll("acquireAll", resources, options);
  }

  using<T>(name: string, ...rest: UsingArguments<Lease, T>): Promise<T>;
  using<T>(names: readonly string[], ...rest: UsingArguments<LeaseSet, T>): Promise<T>;
  async using<T>(
    names: string | readonly string[],
    ...rest: UsingArguments<Lease | LeaseSet, T>
  ): Promise<T> {
    const [options = {}, work] = rest.length === 1 ? [{}, rest[0]] : rest;
    if (typeof work !== "function")
      throw new LeaseholdError("INVALID_CONFIG", "write using(name, options, work): work is not a function");
    const holding =
      typeof names === "string"
        ? await this.#acquire(acquireSpec(this.guarantees, "using", names, options), waitMsOf(options))
        : await this.#acquireAll("using", names, options);
    return using<HeldLease | HeldLeaseSet, T>(holding, work, options.signal);
  }

  async tryAcquire(resource: string, options: TryAcquireOptions = {}): Promise<Lease | undefined> {
    return this.#try(acquireSpec(this.guarantees, "tryAcquire", resource, options));
  }

  holder(resource: string, options: QueryOptions = {}): Promise<HolderHint> {
    return this.#questions.holder(resource, options);
  }

  list(prefix = "", options: ListOptions = {}): Promise<ResourceHint[]> {
    return this.#questions.list(prefix, options);
  }

  watch(prefix = "", options: WatchOptions = {}): AsyncIterableIterator<Change, undefined> {
    return this.#questions.watch(prefix, options);
  }

  on<Name extends keyof LeaseEvents>(name: Name, listener: (event: LeaseEvents[Name]) => void): () => void {
    return this.events.on(name, listener);
  }

  leader(resource: string, options: LeaderOptions = {}): LeaderObserver {
    return this.#questions.leader(resource, options);
  }

  explain(resource: string, options: QueryOptions = {}): Promise<Explanation> {
    return this.#questions.explain(resource, options);
  }

  requestRelease(resource: string, options: QueryOptions = {}): Promise<HolderAction> {
    return this.#questions.requestRelease(resource, options);
  }

  break(resource: string, options: QueryOptions = {}): Promise<HolderAction> {
    return this.#questions.break(resource, options);
  }

  async lead<T>(
    resource: string,
    work: (lease: Lease) => Promise<T>,
    options: LeadOptions = {},
  ): Promise<T | undefined> {
    const spec = acquireSpec(this.guarantees, "lead", resource, options);
    return lead(() => this.#wait(spec, Infinity), work, options.signal);
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      let settle: (closed: Promise<void>) => void = () => undefined;
      // Before anything ends: a program that hears of an end may begin something anew, which must be refused
      // by then.
      this.#closing = new Promise((resolve) => (settle = resolve));
      settle(keptAlive(this.world.keepAlive, () => this.#close()));
    }
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** From the provider. */
  lost(grant: Grant, error: LeaseLostError): void {
    void this.#held.get(grant)?.lease.end(error.reason, error);
    void this.#detached.drop(grant);
  }

  /** From the provider. */
  hint(resource: string): boolean {
    return this.#queues.hint(resource);
  }

  /** From the provider. */
  releaseRequested(request: ReleaseRequest): void {
    const { resource, by, broken } = request;
    const what = broken ? "has broken the lease on" : "asks for";
    for (const { lease } of this.#held.values()) {
      if (lease.resource !== resource) continue;
      lease.noteReleaseRequest(
        new LeaseholdError("RELEASE_REQUESTED", `${by} ${what} ${JSON.stringify(resource)}`),
      );
      return;
    }
  }

  /** From a lease that has ended, by its release or otherwise (`LeaseKeeper`). */
  async takeBack(lease: HeldLease): Promise<void> {
    const { grant } = lease;
    if (lease.ended === "detached") await this.#detach(grant);
    else await this.#releaseGrant(grant);
    const tenancy = this.#held.get(grant);
    this.#held.delete(grant);
    tenancy?.queue.vacate();
  }

  async #acquire(spec: AcquireSpec, waitMs: number): Promise<HeldLease> {
    if (waitMs > 0) return this.#wait(spec, waitMs);
    const lease = await this.#try(spec);
    if (lease !== undefined) return lease;
    throw new LeaseholdError("LEASE_HELD", `${JSON.stringify(spec.resource)} is held by another`);
  }

  #acquireAll(
    call: CallWithOptions,
    resources: readonly string[],
    options: AcquireOptions,
  ): Promise<HeldLeaseSet> {
    const names = inOrder(resources);
    const specs = new Map(names.map((name) => [name, acquireSpec(this.guarantees, call, name, options)]));
    const acquire: AcquireOne = (name, waitMs, signal) =>
      this.#acquire({ ...specs.get(name)!, signal }, waitMs);
    return acquireInOrder(names, waitMsOf(options), options.signal, this.world.clock, acquire);
  }

  /** Waits its turn for at most `waitMs`, and repeats attempts until one is granted. */
  #wait(spec: AcquireSpec, waitMs: number): Promise<HeldLease> {
    return this.#contend(spec, true, waitMs, async (queue, contender) => {
      for (let failures = 0; ;) {
        while (!contender.hasTurn) {
          contender.throwIfLate();
          await contender.sleep(Infinity);
          contender.throwIfGivenUp();
        }
        const outcome = await this.#attempt(spec, queue, contender);
        if (outcome instanceof HeldLease) return outcome;
        if (outcome.kind === "held") {
          failures = 0;
          contender.lastError = undefined;
        } else {
          failures += 1;
          contender.lastError = outcome.error;
          if (!retryable.has(outcome.error.code)) throw outcome.error;
        }
        queue.settle(contender, outcome.kind === "held" ? "held" : outcome.error);
        await contender.sleep(
          Math.max(
            retryMsMin,
            outcome.kind === "held" ? outcome.retryInMs : this.#backoffMs(failures, outcome.retryInMs),
          ),
        );
        contender.throwIfGivenUp();
        contender.throwIfLate();
        queue.rejoin(contender);
      }
    });
  }

  /** One answer: a lease, or `undefined` if another has it. */
  #try(spec: AcquireSpec): Promise<HeldLease | undefined> {
    return this.#contend(spec, false, Infinity, async (queue, contender) => {
      while (!contender.hasTurn) {
        if (contender.answer === "held") return undefined;
        if (contender.answer !== undefined) throw contender.answer;
        await contender.sleep(Infinity);
        contender.throwIfGivenUp();
      }
      const outcome = await this.#attempt(spec, queue, contender);
      if (outcome instanceof HeldLease) return outcome;
      queue.settle(contender, outcome.kind === "held" ? "held" : outcome.error);
      if (outcome.kind === "held") return undefined;
      throw outcome.error;
    });
  }

  /** Puts a caller into the queue of its resource for as long as `compete` runs. */
  async #contend<R>(
    spec: AcquireSpec,
    patient: boolean,
    waitMs: number,
    compete: (queue: LocalQueue, contender: Contender) => Promise<R>,
  ): Promise<R> {
    const { resource, signal } = spec;
    this.#assertOpen();
    signal?.throwIfAborted();
    const contender = new Contender(this.world, resource, patient, waitMs);
    const giveUp = () => contender.giveUp(signal?.reason);
    const queue = this.#queues.join(contender);
    this.#contenders.add(contender);
    watchAbort(signal, giveUp);
    try {
      return await compete(queue, contender);
    } finally {
      unwatchAbort(signal, giveUp);
      this.#contenders.delete(contender);
      queue.leave(contender);
    }
  }

  /** One attempt through the provider by the contender that has the turn. */
  async #attempt(
    spec: AcquireSpec,
    queue: LocalQueue,
    contender: Contender,
  ): Promise<HeldLease | Exclude<AttemptOutcome, { kind: "granted" }>> {
    contender.forgetWakes();
    const blockedMs = this.#detached.isEmpty ? 0 : await this.#detached.leftMs(spec.resource);
    if (blockedMs > 0) {
      contender.throwIfGivenUp();
      return { kind: "held", retryInMs: blockedMs };
    }
    const leftMs = contender.deadlineMs - this.world.clock.monotonicMs();
    const timeoutMs = Math.min(Math.max(leftMs, attemptTimeoutMsMin), this.guarantees.ttlMaxMs);
    const { resource, ttlMs, data } = spec;
    const { contended } = queue;
    const outcome = await this.provider.attempt(
      { resource, ttlMs, timeoutMs, contended, waiting: contender.patient, data, upkeep: spec },
      contender,
    );
    if (outcome.kind !== "granted") {
      contender.throwIfGivenUp();
      return outcome;
    }
    if (!contender.hasGivenUp && outcome.grant.remainingMs() > 0) {
      // What renews also ends it. Two that count `maxHold`, each from when it heard of the grant, would have
      // two ends.
      const byItself = this.provider.renewsByItself === true;
      const renewedElsewhere = spec.autoRenew && spec.maxHoldMs === Infinity;
      const kept = byItself ? { ...spec, autoRenew: false, maxHoldMs: Infinity, renewedElsewhere } : spec;
      const lease = new HeldLease(this, outcome.grant, kept);
      this.#held.set(outcome.grant, { lease, queue });
      queue.occupy(contender, lease);
      if (this.events.acquired.isHeard) this.events.acquired.tell({ lease });
      return lease;
    }
    await this.#releaseGrant(outcome.grant);
    contender.throwIfGivenUp();
    const error = new LeaseholdError(
      "NO_QUORUM",
      "the answer came when the lease that it granted had run out",
    );
    return { kind: "failed", error };
  }

  async #detach(grant: Grant): Promise<void> {
    try {
      await this.provider.detach?.(grant);
    } catch {
      // What renews it has gone, and does so no more.
    }
    this.#detached.add(grant);
  }

  /** Best effort: a resource that cannot be released now becomes free when its lease runs out. */
  async #releaseGrant(grant: Grant): Promise<void> {
    try {
      await this.provider.release(grant);
    } catch {
      // The program has stopped using the resource, which is all that it can do; there is nobody to tell.
    }
  }

  /**
   * A random pause up to the bound; after a hint when to come back it is half of that longer, and its bound
   * at least the hint.
   */
  #backoffMs(failures: number, retryInMs = 0): number {
    const boundMs = backOffBoundMs(failures, backoffMsBase, backoffMsMax);
    return retryInMs / 2 + this.world.random.next() * Math.max(boundMs, retryInMs);
  }

  async #close(): Promise<void> {
    this.#questions.close();
    for (const contender of this.#contenders) contender.giveUp(new LeaseholdError("CLOSED"));
    for (const { lease } of this.#held.values()) {
      // The work of a leader is asked to stop and given time for it, before another may lead.
      if (lease.hasWork) lease.resign(new LeaseLostError(lease.resource, "closed"));
      else void lease.end("closed");
    }
    await this.#quiet();
    for (const { lease } of this.#held.values()) void lease.end("closed");
    await this.#quiet();
    this.#detached.clear();
    await this.#closeProvider();
  }

  /** A store that hangs, or a peer that does not answer, must not keep a program from going on. */
  async #closeProvider(): Promise<void> {
    let late: Timer | undefined;
    const given = new Promise<void>((resolve) => (late = this.world.timers.after(closeStepMs, resolve)));
    await Promise.race([this.provider.close(), given]).finally(() => late?.cancel());
  }

  /** Resolves when no caller waits and nothing is held, or after a while. */
  async #quiet(): Promise<void> {
    if (this.#queues.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.world.timers.after(closeStepMs, resolve);
      this.#queues.onNone = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#queues.onNone = undefined;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new LeaseholdError("CLOSED");
  }
}
