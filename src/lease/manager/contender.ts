import { LeaseholdError } from "../errors.js";
import { formatDuration } from "../duration.js";
import type { Cancellation } from "../provider.js";
import type { Timer, World } from "../../common/ports.js";

/**
 * One caller that wants a resource: how long it is willing to wait, whether it has given up, and its sleep.
 *
 * A patient contender waits its turn until its deadline; one that is not patient (a try) wants one answer.
 */
export class Contender implements Cancellation {
  readonly resource: string;
  readonly patient: boolean;
  /** On the steady clock. */
  readonly deadlineMs: number;
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
  /** Why the last attempt failed; what a caller is told whose deadline has come. */
  lastError: LeaseholdError | undefined;

  /** Set by the provider during an attempt. */
  onCancel: (() => void) | undefined;

  readonly #world: World;
  readonly #waitMs: number;
  #gaveUp: { readonly reason: unknown } | undefined;
  #woken = false;
  #resume: (() => void) | undefined;

  constructor(world: World, resource: string, patient: boolean, waitMs: number) {
    this.#world = world;
    this.resource = resource;
    this.patient = patient;
    this.#waitMs = waitMs;
    this.deadlineMs = world.clock.monotonicMs() + waitMs;
  }

  get hasGivenUp(): boolean {
    return this.#gaveUp !== undefined;
  }

  get cancelled(): boolean {
    return this.hasGivenUp;
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
    if (this.#world.clock.monotonicMs() < this.deadlineMs) return;
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
    if (!this.#woken) {
      const { clock, timers } = this.#world;
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
