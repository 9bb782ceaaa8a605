import { keptAlive } from "../../common/keep-alive.js";
import { acquireSpec, type AcquireSpec, waitMsOf } from "./acquire-spec.js";
import { LeaseholdError, LeaseLostError } from "../errors.js";
import { Acquisitions } from "./acquisitions.js";
import { attachable, drawPass, handleFor } from "./attach.js";
import { Alarm } from "./alarm.js";
import { announce } from "./announced-call.js";
import { DetachedLeases } from "./detached-leases.js";
import { Events } from "./events.js";
import { acquireForm, asksForForm, type FormParts, tryForm } from "./forms.js";
import type { Held } from "../forms/exclusive.js";
import { HeldLease, type LeaseKeeper } from "./held-lease.js";
import { lead } from "./lead.js";
import { acquireInOrder, type AcquireOne, type HeldLeaseSet, inOrder } from "./lease-set.js";
import { CommonTerms } from "./lease-terms.js";
import { LocalQueues } from "../queue/local-queues.js";
import type { Timer, World } from "../../common/ports.js";
import type { Grant, Provider, ProviderEvents, ReleaseRequest } from "../provider.js";
import { Queries } from "./queries.js";
import type { LeaseTracing } from "./tracing.js";
import type {
  AcquireAllOptions,
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
  TenureOptions,
  TryAcquireOptions,
  WatchOptions,
} from "../types.js";
import { using } from "./work.js";

/**
 * How long, in ms, `close` waits for the work of leaders to settle, then for releases, then for the provider
 * to close.
 */
const closeStepMs = 1_000;

const noOptions: AcquireOptions = {};

/** The arguments of `using` after the name or names. */
type UsingArguments<Held, T> =
  | readonly [work: (held: Held) => T | Promise<T>]
  | readonly [options: AcquireOptions | undefined, work: (held: Held) => T | Promise<T>];

/**
 * The waist over one provider: checks arguments, queues callers, repeats attempts, renews and ends leases. It
 * makes at most one call of `attempt`, `renew` or `release` at a time for one resource.
 */
export class LeaseManager implements Leases, LeaseKeeper, ProviderEvents {
  readonly provider: Provider;
  readonly world: World;
  readonly events: Events;
  readonly alarm: Alarm;
  readonly terms: CommonTerms<LeaseKeeper> = new CommonTerms<LeaseKeeper>(this);

  readonly #queues: LocalQueues<HeldLease>;
  readonly #detached = new DetachedLeases((grant) => this.giveBack(grant));
  readonly #acquisitions: Acquisitions;
  readonly #queries: Queries;
  readonly #closed = new AbortController();
  #closing: Promise<void> | undefined;
  #tracing: LeaseTracing | undefined;

  constructor(provider: Provider, world: World) {
    this.provider = provider;
    this.world = world;
    this.events = new Events(world.hooks);
    this.alarm = new Alarm(world);
    this.#queues = new LocalQueues(world.keepAlive);
    this.#acquisitions = new Acquisitions(this, this.#queues, this.#detached);
    this.#queries = new Queries(provider, world);
    provider.attach(this);
  }

  get guarantees(): Guarantees {
    return this.provider.guarantees;
  }

  get self(): string {
    return this.provider.holder;
  }

  get tracing(): LeaseTracing | undefined {
    return this.#tracing;
  }

  /**
   * Traces the leases that are acquired from now on; `undefined` stops it.
   *
   * @throws LeaseholdError `INVALID_CONFIG` when they are traced already.
   */
  traceWith(tracing: LeaseTracing | undefined): void {
    if (tracing !== undefined && this.#tracing !== undefined)
      throw new LeaseholdError("INVALID_CONFIG", "these leases are traced already");
    this.#tracing = tracing;
  }

  /** The lease of this participant on the resource, until it has been released. */
  leaseOn(resource: string): Lease | undefined {
    return this.#queues.leaseOn(resource);
  }

  acquire(resource: string, options: AcquireOptions = noOptions): Promise<Lease> {
    try {
      const spec = acquireSpec(this.guarantees, "acquire", resource, options);
      const waitMs = waitMsOf(options);
      // Not an async function, because that would create a second promise.
      return this.#acquireAs(spec, options, waitMs);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async acquireAll(resources: readonly string[], options: AcquireAllOptions = {}): Promise<LeaseSet> {
    return this.#acquireAll(resources, options);
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
    const run = () => this.#using(names, options, work);
    if (this.#tracing === undefined) return run();
    return this.#tracing.work("using", typeof names === "string" ? names : undefined, run);
  }

  async #using<T>(
    names: string | readonly string[],
    options: AcquireOptions,
    work: (held: Lease | LeaseSet) => T | Promise<T>,
  ): Promise<T> {
    const holding =
      typeof names === "string"
        ? await this.#acquireOne(names, options)
        : await this.#acquireAll(names, options);
    return using<Held | HeldLeaseSet, T>(holding, work, options.signal);
  }

  async tryAcquire(resource: string, options: TryAcquireOptions = {}): Promise<Lease | undefined> {
    const spec = acquireSpec(this.guarantees, "tryAcquire", resource, options);
    return this.#traced(spec, (own) =>
      asksForForm(resource, options)
        ? this.#announced(resource, () => tryForm(this.#formParts, own, options))
        : this.#acquisitions.try(own, true),
    );
  }

  async attach(text: string, options: TenureOptions = {}): Promise<Lease> {
    const handle = attachable(this.guarantees, this.world.clock, text);
    const spec = acquireSpec(this.guarantees, "attach", handle.resource, options);
    return this.#traced(spec, (own) => this.#acquisitions.attach({ ...own, handle }));
  }

  holder(resource: string, options: QueryOptions = {}): Promise<HolderHint> {
    return this.#queries.holder(resource, options);
  }

  list(prefix = "", options: ListOptions = {}): Promise<ResourceHint[]> {
    return this.#queries.list(prefix, options);
  }

  watch(prefix = "", options: WatchOptions = {}): AsyncIterableIterator<Change, undefined> {
    return this.#queries.watch(prefix, options);
  }

  on<Name extends keyof LeaseEvents>(name: Name, listener: (event: LeaseEvents[Name]) => void): () => void {
    return this.events.on(name, listener);
  }

  leader(resource: string, options: LeaderOptions = {}): LeaderObserver {
    return this.#queries.leader(resource, options);
  }

  explain(resource: string, options: QueryOptions = {}): Promise<Explanation> {
    return this.#queries.explain(resource, options);
  }

  requestRelease(resource: string, options: QueryOptions = {}): Promise<HolderAction> {
    return this.#queries.requestRelease(resource, options);
  }

  handOver(resource: string, to: string, options: QueryOptions = {}): Promise<HolderAction> {
    return this.#queries.handOver(resource, to, options);
  }

  break(resource: string, options: QueryOptions = {}): Promise<HolderAction> {
    return this.#queries.break(resource, options);
  }

  async lead<T>(
    resource: string,
    work: (lease: Lease) => Promise<T>,
    options: LeadOptions = {},
  ): Promise<T | undefined> {
    const spec = acquireSpec(this.guarantees, "lead", resource, options);
    const campaign = () => this.#acquireAs(spec, options, Infinity);
    return lead(campaign, work, options.signal, (run) => this.#tracing?.work("lead", resource, run) ?? run());
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      let settle: (closed: Promise<void>) => void = () => undefined;
      // Set before any lease ends: a program that is notified of an end may make another call, which has to
      // be refused.
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
    const lease = this.#queues.leaseOn(grant.resource);
    if (lease?.grant === grant) void lease.end(error.reason, error);
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
    this.#queues
      .leaseOn(resource)
      ?.noteReleaseRequest(
        new LeaseholdError("RELEASE_REQUESTED", `${by} ${what} ${JSON.stringify(resource)}`),
      );
  }

  /** Called by a lease that has ended, through its release or otherwise (`LeaseKeeper`). */
  takeBack(lease: HeldLease): Promise<void> | undefined {
    const given = this.#tracing === undefined ? this.#take(lease) : this.#takeTraced(lease, this.#tracing);
    if (given !== undefined) return given.then(() => this.#queues.vacate(lease));
    this.#queues.vacate(lease);
    return undefined;
  }

  #takeTraced(lease: HeldLease, tracing: LeaseTracing): Promise<void> | undefined {
    return tracing.ended(lease, lease.ended ?? "released", () => this.#take(lease));
  }

  #take(lease: HeldLease): Promise<void> | undefined {
    return lease.ended === "detached" ? this.#detach(lease) : this.giveBack(lease.grant);
  }

  #acquireOne(resource: string, options: AcquireOptions): Promise<Held> {
    const spec = acquireSpec(this.guarantees, "using", resource, options);
    const waitMs = waitMsOf(options);
    return this.#acquireAs(spec, options, waitMs);
  }

  #acquireAs(spec: AcquireSpec, options: AcquireOptions, waitMs: number): Promise<Held> {
    if (this.#tracing === undefined) return this.#acquire(spec, options, waitMs);
    return this.#tracing.call(spec, (own) => this.#acquire(own, options, waitMs));
  }

  #traced<T extends Held | undefined>(
    spec: AcquireSpec,
    call: (spec: AcquireSpec) => Promise<T>,
  ): Promise<T> {
    return this.#tracing === undefined ? call(spec) : this.#tracing.call(spec, call);
  }

  /** Emits the events of a call for a lease of another form, which consists of several leases. */
  async #announced<T extends Held | undefined>(resource: string, call: () => Promise<T>): Promise<T> {
    const announced = announce(resource, this.events, this.world.clock);
    try {
      const lease = await call();
      announced?.served(lease);
      return lease;
    } catch (error) {
      announced?.failed(error);
      throw error;
    }
  }

  #acquire(spec: AcquireSpec, options: AcquireOptions, waitMs: number): Promise<Held> {
    if (asksForForm(spec.resource, options))
      return this.#announced(spec.resource, () => acquireForm(this.#formParts, spec, options, waitMs));
    return waitMs > 0 ? this.#acquisitions.wait(spec, waitMs, true) : this.#acquireAtOnce(spec);
  }

  get #formParts(): FormParts {
    const { provider, world } = this;
    return { acquisitions: this.#acquisitions, provider, world, closed: this.#closed.signal };
  }

  async #acquireAtOnce(spec: AcquireSpec): Promise<HeldLease> {
    const lease = await this.#acquisitions.try(spec, true);
    if (lease !== undefined) return lease;
    throw new LeaseholdError("LEASE_HELD", `${JSON.stringify(spec.resource)} is held by another`);
  }

  #acquireAll(resources: readonly string[], options: AcquireAllOptions): Promise<HeldLeaseSet> {
    const names = inOrder(resources);
    const specs = new Map(
      names.map((name) => [name, acquireSpec(this.guarantees, "acquireAll", name, options)]),
    );
    const acquire: AcquireOne = (name, waitMs, signal) =>
      this.#acquireAs({ ...specs.get(name)!, signal }, {}, waitMs);
    return acquireInOrder(names, waitMsOf(options), options.signal, this.world.clock, acquire);
  }

  async #detach(lease: HeldLease): Promise<void> {
    const { grant } = lease;
    const pass = drawPass(this.world.random);
    if (await this.#noteDetached(grant, pass))
      lease.handle = handleFor(grant, pass, this.guarantees, this.world.clock);
    else this.#detached.add(grant);
  }

  /** Whether the ground has stored the pass. */
  async #noteDetached(grant: Grant, pass: string): Promise<boolean> {
    try {
      return (await this.provider.detach?.(grant, pass)) === true;
    } catch {
      // The part of the provider that renews it is gone, so it is not renewed either.
      return false;
    }
  }

  /** Best effort: if the release fails, the resource becomes free when the lease expires. */
  giveBack(grant: Grant, isUnused = false): Promise<void> | undefined {
    // The program has stopped using the resource, and nobody could handle the error.
    const ignored = () => undefined;
    try {
      return this.provider.release(grant, isUnused)?.catch(ignored);
    } catch {
      return undefined;
    }
  }

  async #close(): Promise<void> {
    this.#queries.close();
    this.#closed.abort(new LeaseholdError("CLOSED"));
    this.#queues.giveUpAll(new LeaseholdError("CLOSED"));
    for (const lease of this.#queues.leases()) {
      // A leader's work is asked to stop, and gets some time for that, before another may lead.
      if (lease.hasWork) lease.resign(new LeaseLostError(lease.resource, "closed"));
      else void lease.end("closed");
    }
    await this.#quiet();
    for (const lease of this.#queues.leases()) void lease.end("closed");
    await this.#quiet();
    this.#detached.clear();
    await this.#closeProvider();
  }

  /** A store that hangs or a peer that does not answer must not block the program. */
  async #closeProvider(): Promise<void> {
    let late: Timer | undefined;
    const given = new Promise<void>((resolve) => (late = this.world.timers.after(closeStepMs, resolve)));
    await Promise.race([this.provider.close(), given]).finally(() => late?.cancel());
  }

  /** Resolves when no caller waits and no lease is held, at the latest after `closeStepMs`. */
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

  assertOpen(): void {
    if (this.#closing !== undefined) throw new LeaseholdError("CLOSED");
  }
}
