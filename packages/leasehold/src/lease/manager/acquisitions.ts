import { backOffBoundMs } from "../../common/back-off.js";
import type { World } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";
import { type Handle, spent } from "../handle.js";
import type { AttemptOutcome, AttemptRequest, Grant, Provider } from "../provider.js";
import { mayPass } from "../retryable.js";
import type { AcquireSpec } from "./acquire-spec.js";
import { announce } from "./announced-call.js";
import { Contender, type Contest } from "../queue/contender.js";
import type { DetachedLeases } from "./detached-leases.js";
import type { Events } from "./events.js";
import { HeldLease, type LeaseKeeper } from "./held-lease.js";
import type { HeldLeaseOptions } from "./lease-terms.js";
import type { LocalQueues } from "../queue/local-queues.js";

/**
 * The minimum timeout of an attempt, ms, even if the caller has less time left: a shorter attempt could not
 * succeed on any network.
 */
const attemptTimeoutMsMin = 100;

/** The minimum pause between two attempts, so that a provider can't cause a busy loop. */
const retryMsMin = 1;

/**
 * After a failure the pause before the next attempt is random; its bound doubles with each failure, up to the
 * maximum.
 */
const backoffMsBase = 50;
const backoffMsMax = 2_000;

/** A caller in the queue of its resource. */
type Caller = Contender<AcquireSpec, HeldLease>;
type Resolve = (lease: HeldLease | undefined) => void;

/** The manager, as acquisitions see it. */
export interface AcquisitionPorts extends LeaseKeeper {
  readonly provider: Provider;
  readonly events: Events;
  /** @throws LeaseholdError `CLOSED` */
  assertOpen(): void;
  /**
   * Best effort, never rejects; `undefined` if the release is already done.
   *
   * @param isUnused true if no program has had the grant
   */
  giveBack(grant: Grant, isUnused?: boolean): Promise<void> | undefined;
}

/**
 * Acquires leases for callers. Each waits for its turn in the queue of its resource, makes attempts through
 * the provider, and sleeps between them. The code consists of steps instead of async functions, so a call
 * costs only one promise, and one more if it sleeps.
 */
export class Acquisitions implements Contest<AcquireSpec, HeldLease> {
  readonly world: World;
  readonly #ports: AcquisitionPorts;
  readonly #queues: LocalQueues<HeldLease>;
  readonly #detached: DetachedLeases;

  constructor(ports: AcquisitionPorts, queues: LocalQueues<HeldLease>, detached: DetachedLeases) {
    this.world = ports.world;
    this.#ports = ports;
    this.#queues = queues;
    this.#detached = detached;
  }

  /**
   * Waits for its turn for at most `waitMs`, and repeats attempts until one is granted.
   *
   * @param isCall true if the program made this call, which then has events
   */
  wait(spec: AcquireSpec, waitMs: number, isCall = false): Promise<HeldLease> {
    return new Promise<HeldLease>((resolve, reject) => {
      // A patient contender never resolves with `undefined`.
      this.#begin(spec, true, waitMs, isCall, resolve as Resolve, reject);
    });
  }

  /** One attempt: a lease, or `undefined` if another has it. */
  try(spec: AcquireSpec, isCall = false): Promise<HeldLease | undefined> {
    return new Promise((resolve, reject) => this.#begin(spec, false, Infinity, isCall, resolve, reject));
  }

  /** As `try`, for a detached lease. Rejects if it can't be attached. */
  attach(spec: AcquireSpec & { readonly handle: Handle }): Promise<HeldLease> {
    // An attaching contender never resolves with `undefined`.
    return this.try(spec, true) as Promise<HeldLease>;
  }

  /** Adds a caller to the queue of its resource until the caller gets its answer. */
  #begin(
    spec: AcquireSpec,
    patient: boolean,
    waitMs: number,
    isCall: boolean,
    resolve: Resolve,
    reject: (reason: unknown) => void,
  ): void {
    const call = isCall ? announce(spec.resource, this.#ports.events, this.world.clock) : undefined;
    try {
      this.#ports.assertOpen();
      spec.signal?.throwIfAborted();
    } catch (error) {
      call?.failed(error);
      throw error;
    }
    const contender = new Contender(this, spec, patient, waitMs, resolve, reject, call);
    try {
      this.#queues.join(contender);
    } catch (error) {
      contender.reject(error);
      return;
    }
    this.#goOn(contender);
  }

  /** Advances a contender that has just joined or was woken. */
  #goOn(contender: Caller): void {
    try {
      contender.throwIfGivenUp();
      if (contender.hasTurn) {
        this.#attempt(contender);
      } else if (contender.answer === "held") {
        if (contender.attaches) throw spent(contender.resource, "this program holds the resource");
        this.#serve(contender, undefined);
      } else {
        if (contender.answer !== undefined) throw contender.answer;
        contender.throwIfLate();
        contender.spec.trace?.waits(contender.resource);
        void contender.sleep(Infinity).then(() => this.#goOn(contender));
      }
    } catch (error) {
      this.#fail(contender, error);
    }
  }

  #serve(contender: Caller, lease: HeldLease | undefined): void {
    contender.queue!.leave(contender);
    contender.resolve(lease);
  }

  #fail(contender: Caller, error: unknown): void {
    contender.queue!.leave(contender);
    contender.reject(error);
  }

  /** Makes one attempt through the provider, for the contender whose turn it is. */
  #attempt(contender: Caller): void {
    contender.forgetWakes();
    if (this.#detached.isEmpty || contender.attaches) {
      this.#ask(contender);
      return;
    }
    void this.#detached.leftMs(contender.resource).then((blockedMs) => {
      if (blockedMs > 0) this.settled(contender, { kind: "held", retryInMs: blockedMs });
      else this.#ask(contender);
    });
  }

  #ask(contender: Caller): void {
    const { provider } = this.#ports;
    const { spec, patient } = contender;
    const { resource, ttlMs, data } = spec;
    // A try has no deadline of its own.
    const timeoutMs = Math.min(Math.max(contender.leftMs, attemptTimeoutMsMin), provider.guarantees.ttlMaxMs);
    const contended = contender.queue!.contended;
    const request = { resource, ttlMs, timeoutMs, contended, waiting: patient, data, upkeep: spec };
    this.#send(provider, request, contender);
  }

  #send(provider: Provider, request: AttemptRequest, contender: Caller): void {
    const { handle } = contender.spec;
    try {
      if (provider.begin !== undefined && handle === undefined) {
        provider.begin(request, contender);
        return;
      }
      const attempt =
        handle === undefined
          ? provider.attempt(request, contender)
          : provider.adopt!(request, handle, contender);
      attempt.then(
        (outcome) => this.settled(contender, outcome),
        (error: unknown) => this.#fail(contender, error),
      );
    } catch (error) {
      this.#fail(contender, error);
    }
  }

  /** The attempt has ended. */
  settled(contender: Caller, outcome: AttemptOutcome): void {
    try {
      if (outcome.kind === "granted") {
        this.#granted(contender, outcome.grant);
        return;
      }
      contender.throwIfGivenUp();
      if (contender.patient) this.#sleep(contender, outcome);
      else this.#answer(contender, outcome);
    } catch (error) {
      this.#fail(contender, error);
    }
  }

  #granted(contender: Caller, grant: Grant): void {
    const remainingMs = contender.hasGivenUp ? 0 : grant.remainingMs();
    if (remainingMs <= 0) {
      const given = this.#ports.giveBack(grant, true);
      if (given === undefined) this.#tooLate(contender);
      else void given.then(() => this.#tooLate(contender));
      return;
    }
    const lease = new HeldLease(this.#ports, grant, this.#kept(contender.spec), remainingMs);
    contender.queue!.occupy(contender, lease);
    contender.spec.trace?.granted(lease);
    const { acquired } = this.#ports.events;
    if (acquired.hasListeners) acquired.emit({ lease });
    // A listener may have aborted the call.
    if (contender.hasGivenUp) void lease.release().then(() => this.#goOn(contender));
    else this.#serve(contender, lease);
  }

  /**
   * The side that renews a lease also ends it. If both sides enforced `maxHold`, each counting from when it
   * learned of the grant, the lease would have two ends.
   */
  #kept(spec: AcquireSpec): HeldLeaseOptions {
    if (this.#ports.provider.renewsByItself !== true) return spec;
    const renewedElsewhere = spec.autoRenew && spec.maxHoldMs === Infinity;
    return { ttlMs: spec.ttlMs, autoRenew: false, maxHoldMs: Infinity, renewedElsewhere };
  }

  #tooLate(contender: Caller): void {
    const error = new LeaseholdError(
      "NO_QUORUM",
      "the answer arrived after the lease that it granted had expired",
    );
    this.settled(contender, { kind: "failed", error });
  }

  /** A patient contender pauses and tries again. */
  #sleep(contender: Caller, outcome: Exclude<AttemptOutcome, { kind: "granted" }>): void {
    const isHeld = outcome.kind === "held";
    contender.failures = isHeld ? 0 : contender.failures + 1;
    contender.lastError = isHeld ? undefined : outcome.error;
    if (!isHeld && !mayPass(outcome.error)) throw outcome.error;
    contender.queue!.settle(contender, isHeld ? "held" : outcome.error);
    if (isHeld) contender.spec.trace?.waits(contender.resource, outcome.holder);
    const sleepMs = isHeld ? outcome.retryInMs : this.#backoffMs(contender.failures, outcome.retryInMs);
    void contender.sleep(Math.max(retryMsMin, sleepMs)).then(() => this.#retry(contender));
  }

  #retry(contender: Caller): void {
    try {
      contender.throwIfGivenUp();
      contender.throwIfLate();
      contender.queue!.rejoin(contender);
    } catch (error) {
      this.#fail(contender, error);
      return;
    }
    this.#goOn(contender);
  }

  /** A try ends with its first outcome. */
  #answer(contender: Caller, outcome: Exclude<AttemptOutcome, { kind: "granted" }>): void {
    contender.queue!.settle(contender, outcome.kind === "held" ? "held" : outcome.error);
    if (outcome.kind === "failed") throw outcome.error;
    if (contender.attaches) throw spent(contender.resource, "another holds the resource");
    this.#serve(contender, undefined);
  }

  /**
   * A random pause up to the bound. If the provider gave `retryInMs`, half of that is added to the pause, and
   * the bound is at least `retryInMs`.
   */
  #backoffMs(failures: number, retryInMs = 0): number {
    const boundMs = backOffBoundMs(failures, backoffMsBase, backoffMsMax);
    return retryInMs / 2 + this.world.random.next() * Math.max(boundMs, retryInMs);
  }
}
