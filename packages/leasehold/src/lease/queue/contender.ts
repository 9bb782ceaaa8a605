import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { LeaseholdError } from "../errors.js";
import { formatDuration } from "../duration.js";
import type { AttemptOutcome, AttemptTaker } from "../provider.js";
import type { Timer, World } from "../../common/ports.js";

/** The part of a call that its queue looks at. */
export interface Wanted {
  readonly resource: string;
  /** Aborts when the caller no longer wants it. */
  readonly signal?: AbortSignal | undefined;
  /** Of a detached lease that is to be attached. */
  readonly handle?: object | undefined;
}

/** A lease that this process has. */
export interface OwnLease {
  readonly resource: string;
  /** Milliseconds; 0 when it has ended. */
  remaining(): number;
}

/** A contender's place among the callers of its process; implemented and described by `LocalQueue`. */
export interface Queue<Lease extends OwnLease> {
  readonly contended: boolean;
  rejoin(contender: Contender<Wanted, Lease>): void;
  settle(contender: Contender<Wanted, Lease>, outcome: "held" | LeaseholdError): void;
  occupy(contender: Contender<Wanted, Lease>, lease: Lease): void;
  leave(contender: Contender<Wanted, Lease>): void;
}

/** A call whose events somebody listens to. */
export interface AnnouncedCall {
  /** On the steady clock. */
  readonly startedMs: number;
  served(lease: object | undefined): void;
  failed(error: unknown): void;
}

/** Advances a contender when its attempt has ended. Never throws. */
export interface Contest<Spec extends Wanted, Lease extends OwnLease> {
  readonly world: World;
  settled(contender: Contender<Spec, Lease>, outcome: AttemptOutcome): void;
}

/**
 * One caller that wants a resource, from the call to its answer: its deadline, whether it has given up, and
 * its sleep.
 *
 * A patient contender waits for the turn until its deadline; one that is not patient (a try) wants one
 * answer.
 *
 * ```
 *  waits    → attempts   its queue passes the turn on to it
 *  waits    → answered   it is a try, and the lease or the attempt of another caller answers it
 *  attempts → served     the lease was granted
 *  attempts → answered   it is a try, or the failure cannot pass: "held" or the error
 *  attempts → sleeps     it is patient, and another has the resource or the attempt failed
 *  sleeps   → waits      its pause is over, or a hint woke it
 * ```
 *
 * In each state it ends when its caller gives up, and between attempts when its deadline has passed.
 */
export class Contender<Spec extends Wanted, Lease extends OwnLease> implements AttemptTaker {
  readonly spec: Spec;
  readonly patient: boolean;
  /** The queue of its resource. Written by the queue. */
  queue: Queue<Lease> | undefined;
  /** On the steady clock. */
  readonly deadlineMs: number;
  /** Its failed attempts in a row. */
  failures = 0;
  /** It waits for the turn to make an attempt. Written by the queue. */
  wantsTurn = false;
  /** It may make an attempt now. Written by the queue. */
  hasTurn = false;
  /**
   * The result for a try of another contender's attempt: another participant or caller has the resource, or
   * the error of that attempt. Written by the queue.
   */
  answer: "held" | LeaseholdError | undefined;
  /** The order of arrival. Written by the queue. */
  ticket = 0;
  /** Its neighbours in a list of contenders, while it is in one. Written by the list. */
  previous: Contender<Wanted, Lease> | undefined;
  next: Contender<Wanted, Lease> | undefined;
  /** Why the last attempt failed: the error for a caller whose deadline has passed. */
  lastError: LeaseholdError | undefined;

  /** Set by the provider during an attempt. */
  onCancel: (() => void) | undefined;

  readonly #contest: Contest<Spec, Lease>;
  readonly #call: AnnouncedCall | undefined;
  readonly #waitMs: number;
  readonly #resolve: (lease: Lease | undefined) => void;
  readonly #reject: (reason: unknown) => void;
  #onAbort: (() => void) | undefined;
  #gaveUp: { readonly reason: unknown } | undefined;
  #woken = false;
  #hasSlept = false;
  #resume: (() => void) | undefined;

  constructor(
    contest: Contest<Spec, Lease>,
    spec: Spec,
    patient: boolean,
    waitMs: number,
    resolve: (lease: Lease | undefined) => void,
    reject: (reason: unknown) => void,
    call?: AnnouncedCall,
  ) {
    this.#contest = contest;
    this.#call = call;
    this.spec = spec;
    this.patient = patient;
    this.#waitMs = waitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.deadlineMs = (call?.startedMs ?? contest.world.clock.monotonicMs()) + waitMs;
    const { signal } = spec;
    if (signal === undefined) return;
    this.#onAbort = () => this.giveUp(signal.reason);
    watchAbort(signal, this.#onAbort);
  }

  get resource(): string {
    return this.spec.resource;
  }

  /**
   * Milliseconds until its deadline. A contender that has not slept is still in the call that made it, so the
   * clock is not read again.
   */
  get leftMs(): number {
    return this.#hasSlept ? this.deadlineMs - this.#contest.world.clock.monotonicMs() : this.#waitMs;
  }

  /** Whether it attaches a detached lease: only a lease of this process makes it give up. */
  get attaches(): boolean {
    return this.spec.handle !== undefined;
  }

  get hasGivenUp(): boolean {
    return this.#gaveUp !== undefined;
  }

  get cancelled(): boolean {
    return this.hasGivenUp;
  }

  /** From the provider. */
  settled(outcome: AttemptOutcome): void {
    this.#contest.settled(this, outcome);
  }

  /** The caller is served. */
  resolve(lease: Lease | undefined): void {
    this.#unwatch();
    this.#call?.served(lease);
    this.#resolve(lease);
  }

  reject(reason: unknown): void {
    this.#unwatch();
    this.#call?.failed(reason);
    this.#reject(reason);
  }

  #unwatch(): void {
    if (this.#onAbort !== undefined) unwatchAbort(this.spec.signal, this.#onAbort);
  }

  /** The caller no longer wants a lease (its signal aborted, the participant closes). */
  giveUp(reason: unknown): void {
    if (this.#gaveUp !== undefined) return;
    this.#gaveUp = { reason };
    this.onCancel?.();
    this.wake();
  }

  /** @throws the reason for which the caller gave up, if it did. */
  throwIfGivenUp(): void {
    if (this.#gaveUp !== undefined) throw this.#gaveUp.reason;
  }

  /** @throws the reason of the wait, if the deadline has passed. */
  throwIfLate(): void {
    if (this.#contest.world.clock.monotonicMs() < this.deadlineMs) return;
    if (this.lastError !== undefined) throw this.lastError;
    throw new LeaseholdError(
      "TIMEOUT",
      `waited ${formatDuration(this.#waitMs)} for ${JSON.stringify(this.resource)} and another still has it`,
    );
  }

  /** Ends the sleep, or the next one if it is awake. */
  wake(): void {
    this.#woken = true;
    this.#resume?.();
  }

  /** Discards wake-ups that came before the next sleep. */
  forgetWakes(): void {
    this.#woken = false;
  }

  /** Sleeps until `ms` have passed, the deadline has passed or `wake` is called. */
  async sleep(ms: number): Promise<void> {
    this.#hasSlept = true;
    if (!this.#woken) {
      const { clock, timers } = this.#contest.world;
      const delayMs = Math.min(ms, this.deadlineMs - clock.monotonicMs());
      let timer: Timer | undefined;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
        if (delayMs < Infinity) timer = timers.after(Math.max(0, delayMs), resolve);
      });
      timer?.cancel();
      this.#resume = undefined;
    }
    this.#woken = false;
  }
}
