import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { LeaseholdError } from "../errors.js";
import { formatDuration } from "../duration.js";
import type { AcquireSpec } from "./acquire-spec.js";
import type { HeldLease } from "./held-lease.js";
import type { AttemptOutcome, AttemptTaker } from "../provider.js";
import type { Timer, World } from "../../common/ports.js";

/** Where a contender stands in line; `LocalQueue` is it, and says what each of these is. */
export interface Line {
  readonly contended: boolean;
  rejoin(contender: Contender): void;
  settle(contender: Contender, outcome: "held" | LeaseholdError): void;
  occupy(contender: Contender, lease: HeldLease): void;
  leave(contender: Contender): void;
}

/** Who goes on with a contender when its attempt has ended. Never throws. */
export interface Contest {
  readonly world: World;
  told(contender: Contender, outcome: AttemptOutcome): void;
}

/**
 * One caller that wants a resource, from the call to its answer: how long it is willing to wait, whether it
 * has given up, and its sleep.
 *
 * A patient contender waits its turn until its deadline; one that is not patient (a try) wants one answer.
 */
export class Contender implements AttemptTaker {
  readonly spec: AcquireSpec;
  readonly patient: boolean;
  /** That of its resource. Written by the queue. */
  queue: Line | undefined;
  /** On the steady clock. */
  readonly deadlineMs: number;
  /** Attempts of its that failed in a row. */
  failures = 0;
  /** It waits for the turn to make an attempt. Written by the queue. */
  wantsTurn = false;
  /** It may make an attempt now. Written by the queue. */
  hasTurn = false;
  /**
   * What a try has learnt from another's attempt: another participant or caller has the resource, or why
   * nobody can say. Written by the queue.
   */
  answer: "held" | LeaseholdError | undefined;
  /** In the order in which contenders came. Written by the queue. */
  ticket = 0;
  /** Its neighbours in the list of those who wait, while it is in one. Written by the list. */
  previous: Contender | undefined;
  next: Contender | undefined;
  /** Why the last attempt failed; what a caller is told whose deadline has come. */
  lastError: LeaseholdError | undefined;

  /** Set by the provider during an attempt. */
  onCancel: (() => void) | undefined;

  readonly #contest: Contest;
  readonly #waitMs: number;
  readonly #resolve: (lease: HeldLease | undefined) => void;
  readonly #reject: (reason: unknown) => void;
  #onAbort: (() => void) | undefined;
  #gaveUp: { readonly reason: unknown } | undefined;
  #woken = false;
  #hasSlept = false;
  #resume: (() => void) | undefined;

  constructor(
    contest: Contest,
    spec: AcquireSpec,
    patient: boolean,
    waitMs: number,
    resolve: (lease: HeldLease | undefined) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#contest = contest;
    this.spec = spec;
    this.patient = patient;
    this.#waitMs = waitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.deadlineMs = contest.world.clock.monotonicMs() + waitMs;
    const { signal } = spec;
    if (signal === undefined) return;
    this.#onAbort = () => this.giveUp(signal.reason);
    watchAbort(signal, this.#onAbort);
  }

  get resource(): string {
    return this.spec.resource;
  }

  /**
   * How long it is willing to wait from now on. One that has not slept is still in the call that made it, for
   * which the clock is not read again.
   */
  get leftMs(): number {
    return this.#hasSlept ? this.deadlineMs - this.#contest.world.clock.monotonicMs() : this.#waitMs;
  }

  /** It wants one answer about a lease that was detached, which another's lease is not. */
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
  told(outcome: AttemptOutcome): void {
    this.#contest.told(this, outcome);
  }

  /** The caller is served. */
  resolve(lease: HeldLease | undefined): void {
    this.#unwatch();
    this.#resolve(lease);
  }

  reject(reason: unknown): void {
    this.#unwatch();
    this.#reject(reason);
  }

  #unwatch(): void {
    if (this.#onAbort !== undefined) unwatchAbort(this.spec.signal, this.#onAbort);
  }

  /** The caller wants no lease any more (its signal aborted, the participant closes). */
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

  /** @throws why it had to wait until now, if its deadline has come. */
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

  /** What happened until now is no reason to wake from the next sleep. */
  forgetWakes(): void {
    this.#woken = false;
  }

  /** Sleeps until `ms` have passed, the deadline has come or somebody wakes it. */
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
