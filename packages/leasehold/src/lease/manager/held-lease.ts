import { ContextSignal } from "./context-signal.js";
import { checkLeastMs, formatDuration } from "../duration.js";
import { foundLost, LeaseholdError, LeaseLostError, type LossReason } from "../errors.js";
import { slotNumber } from "../slots.js";
import { inspected } from "../plain-data.js";
import type { World } from "../../common/ports.js";
import type { Alarm, Sleeper } from "./alarm.js";
import type { Events } from "./events.js";
import type { Grant, Provider, RenewalTaker, Upkeep } from "../provider.js";
import type { Lease, LeaseTicket } from "../types.js";
import {
  type CommonTerms,
  type LeaseTerms,
  type HeldLeaseOptions,
  RareState,
  Renewal,
} from "./lease-terms.js";
import type { LeaseTracing } from "./tracing.js";
import type { Holding } from "./work.js";

/** A lease is renewed after a third of its ttl, which leaves two thirds for retries. */
const renewalsPerTtl = 3;

/**
 * A lease whose last request was slow is renewed earlier, by this multiple of the request's duration: on a
 * busy machine the next request may be as slow, and its answer may be read as late.
 */
const slowRequests = 2;

/**
 * The minimum time between two automatic renewals is this fraction of the TTL, which permits at most eight
 * retries before the end.
 */
const renewalRetriesPerTtl = 12;

/** A lease with automatic renewal is late when less than this fraction of its ttl remains. */
const lateParts = 3;

/**
 * The minimum delay until the next check: the resolution of Node's timers. A ground that subtracts elapsed
 * time may report a remainder too small to advance the clock; without a minimum, checks would then repeat
 * endlessly.
 */
const soonestMs = 1;

/**
 * Delays the check for lateness, which because of rounding could otherwise find a little more than a third
 * for ever.
 */
const lateLookMs = 1;

/** A sentinel: no renewal is planned. */
const never = -1;

/** The result for every lease that was released synchronously. */
const given = Promise.resolve();

/**
 * The owner of a lease, which created it and returns its grant in the end: a `LeaseManager`, or the
 * `LeaseServer` of a worker thread.
 */
export interface LeaseKeeper {
  readonly provider: Pick<Provider, "holder" | "renew" | "beginRenewal" | "forgoRenewal" | "keep">;
  readonly world: World;
  readonly alarm: Alarm;
  /** Absent if there can be no listeners. */
  readonly events?: Events;
  readonly tracing?: LeaseTracing | undefined;
  readonly terms: CommonTerms<LeaseKeeper>;
  /**
   * Called once, when the lease has ended and no request for it is in flight. Never rejects; returns
   * `undefined` if it is already done.
   */
  takeBack(lease: HeldLease): Promise<void> | undefined;
}

/**
 * A tenure held by the program. The alarm only wakes the lease (to renew, or to notice the end). Every answer
 * comes from a fresh check of the clocks, and a lease once found expired is lost for ever.
 *
 * There may be a million leases, so state that many share or few need is kept in separate objects.
 */
export class HeldLease implements Lease, Holding, RenewalTaker, Sleeper {
  readonly grant: Grant;

  heapIndex = -1;

  #terms: LeaseTerms<LeaseKeeper>;
  /** On the steady clock, in whole ms: V8 stores a small integer inline, and any other number on the heap. */
  #nextRenewalMs = never;
  #renewal: Renewal | undefined;
  #rareState: RareState | undefined;
  #ended: LossReason | undefined;

  /** @param remainingMs the grant's latest answer */
  constructor(
    keeper: LeaseKeeper,
    grant: Grant,
    options: HeldLeaseOptions,
    remainingMs: number = grant.remainingMs(),
  ) {
    this.grant = grant;
    this.#terms = keeper.terms.of(options);
    const { maxHoldMs } = options;
    const nowMs = keeper.world.clock.monotonicMs();
    if (maxHoldMs < Infinity) this.#rare.latestMs = nowMs + maxHoldMs;
    // If the lease has already expired, the first check finds that, after listeners have been notified of the
    // lease.
    const leftMs = Math.min(remainingMs, maxHoldMs);
    this.#planRenewal(leftMs, nowMs, this.ttlMs - remainingMs);
    this.#setAlarm(leftMs, nowMs);
  }

  get resource(): string {
    return this.grant.resource;
  }

  get token(): bigint {
    return this.grant.token;
  }

  get holder(): string {
    return this.#terms.holder;
  }

  get ttlMs(): number {
    return this.#terms.ttlMs;
  }

  /** The deadline that `maxHold` sets, on the steady clock. */
  get latestMs(): number {
    return this.#rareState?.latestMs ?? Infinity;
  }

  /** Work runs under this lease, so `close` first asks the work to stop. */
  get hasWork(): boolean {
    return this.#rareState?.hasWork === true;
  }

  set hasWork(hasWork: boolean) {
    this.#rare.hasWork = hasWork;
  }

  /** The handle with which the lease can be attached. Written by its keeper when it is detached. */
  get handle(): string | undefined {
    return this.#rareState?.handle;
  }

  set handle(handle: string) {
    this.#rare.handle = handle;
  }

  /** `renewal-late` has been emitted, and no renewal has succeeded since. */
  #isLate(): boolean {
    return this.#rareState?.isLate === true;
  }

  #noteInTime(): void {
    const rare = this.#rareState;
    if (rare?.isLate !== true) return;
    rare.isLate = false;
    this.#terms.keeper.tracing?.inTime(this);
  }

  get #rare(): RareState {
    return (this.#rareState ??= new RareState());
  }

  get slot(): number {
    return slotNumber(this.resource);
  }

  get signal(): AbortSignal {
    this.remaining();
    const rare = this.#rare;
    if (rare.signal === undefined) {
      rare.signal = new ContextSignal(this.#terms.keeper.world);
      if (this.#ended !== undefined) rare.signal.abort(this.#lossError(this.#ended));
    }
    return rare.signal.signal;
  }

  get releaseRequested(): AbortSignal {
    const rare = this.#rare;
    if (rare.releaseRequests === undefined) {
      rare.releaseRequests = new ContextSignal(this.#terms.keeper.world);
      if (rare.releaseRequest !== undefined) rare.releaseRequests.abort(rare.releaseRequest);
    }
    return rare.releaseRequests.signal;
  }

  /**
   * Another participant asks for the resource. Only the first request is reported, as later ones say the
   * same.
   */
  noteReleaseRequest(why: LeaseholdError): void {
    const rare = this.#rare;
    if (this.#ended !== undefined || rare.releaseRequest !== undefined) return;
    rare.releaseRequest = why;
    rare.releaseRequests?.abort(why);
  }

  get loss(): LeaseLostError | undefined {
    const reason = this.ended;
    return reason === undefined || isOwnEnd(reason) ? undefined : this.#lossError(reason);
  }

  /** The reason for the end; `undefined` while the lease is held. */
  get ended(): LossReason | undefined {
    this.remaining();
    return this.#ended;
  }

  remaining(): number {
    return this.#look();
  }

  /**
   * @param errorOf creates the error if the check finds the end. Default: the error is created when it is
   *   first read
   */
  #look(errorOf?: typeof foundLost): number {
    if (this.#ended !== undefined) return 0;
    const { latestMs } = this;
    const holdLeftMs = latestMs === Infinity ? Infinity : latestMs - this.#nowMs();
    const leftMs = Math.min(this.grant.remainingMs(), holdLeftMs);
    if (leftMs > 0) return leftMs;
    const reason = holdLeftMs <= 0 ? "max-hold" : (this.grant.lossReason ?? "expired");
    this.end(reason, errorOf?.(this.resource, reason));
    return 0;
  }

  assertHeld(atLeastMs = 0): void {
    checkLeastMs(atLeastMs);
    const leftMs = this.remaining();
    if (this.#ended !== undefined) throw this.#lossError(this.#ended);
    if (leftMs >= atLeastMs) return;
    const detail = `${formatDuration(leftMs)} remain, ${formatDuration(atLeastMs)} were asked for`;
    throw new LeaseLostError(this.resource, "expired", detail);
  }

  async renew(): Promise<void> {
    this.assertHeld();
    const extended = await this.#requestRenewal().outcome;
    // The code that reported the extension has checked the clocks.
    if (extended && this.#ended === undefined) return;
    this.assertHeld();
    throw new LeaseholdError(
      "NO_QUORUM",
      `the lease on ${JSON.stringify(this.resource)} was not renewed; it runs for ${formatDuration(this.remaining())} more`,
      { cause: this.#rareState?.renewalError },
    );
  }

  release(): Promise<void> {
    // A loss stays a loss even if it went unnoticed.
    this.remaining();
    return this.end("released");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async detach(): Promise<LeaseTicket> {
    this.assertHeld();
    await this.end("detached");
    const { resource, holder, token, handle } = this;
    const ticket = { resource, holder, token: token.toString(), remainingMs: this.grant.remainingMs() };
    return handle === undefined ? ticket : { ...ticket, handle };
  }

  /** Stops renewal; the lease stays held until it expires. */
  letRunOut(): void {
    this.#terms = { ...this.#terms, autoRenew: false };
    this.#nextRenewalMs = never;
  }

  /**
   * Sets the terms of a lease that was acquired without a bound. Its `maxHold` counts from here. So does its
   * ttl if it will not be renewed, provided that one more renewal succeeds.
   */
  async keep(terms: Upkeep): Promise<void> {
    const { autoRenew, maxHoldMs } = terms;
    if ((autoRenew && maxHoldMs === Infinity) || this.remaining() === 0) return;
    const { provider } = this.#terms.keeper;
    if (provider.keep !== undefined) {
      this.#terms = { ...this.#terms, renewedElsewhere: false };
      await provider.keep(this.grant, terms);
      return;
    }
    if (!autoRenew) await this.#requestRenewal().outcome;
    this.#keep(terms);
  }

  #keep({ autoRenew, maxHoldMs }: Upkeep): void {
    if (this.#ended !== undefined) return;
    const nowMs = this.#nowMs();
    this.#terms = { ...this.#terms, autoRenew };
    this.#rare.latestMs = nowMs + maxHoldMs;
    const leftMs = Math.min(this.grant.remainingMs(), maxHoldMs);
    this.#planRenewal(leftMs, nowMs, 0);
    this.#setAlarm(leftMs, nowMs);
  }

  toJSON(): { resource: string; holder: string; token: string; remainingMs: number } {
    return {
      resource: this.resource,
      holder: this.holder,
      token: this.token.toString(),
      remainingMs: this.remaining(),
    };
  }

  [inspected]() {
    return this.toJSON();
  }

  /**
   * Ends the tenure unless it has already ended, with the given error if any. Resolves when the resource has
   * been released.
   */
  end(reason: LossReason, error?: LeaseLostError): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = reason;
      if (error !== undefined) this.#rare.error = error;
      this.#terms.keeper.alarm.cancel(this);
      const returned = this.#mayReturnAtOnce() ? this.#terms.keeper.takeBack(this) : this.#returnToKeeper();
      const others = this.#rareState?.others;
      // Set before the signal aborts: a listener may call release().
      if (others !== undefined) this.#rare.returned = others.then(() => returned);
      else if (returned !== undefined) this.#rare.returned = returned;
      this.#rareState?.signal?.abort(this.#lossError(reason));
      this.#emitEnd(reason);
    }
    return this.#rareState?.returned ?? given;
  }

  /**
   * Whether the grant can be returned synchronously: the program has called `release`, no request is in
   * flight, and no listener would run after it. After an end found by a check, the grant is returned later,
   * because the check may have run in the middle of any code.
   */
  #mayReturnAtOnce(): boolean {
    const hasListeners = this.#rareState?.signal !== undefined;
    return this.#ended === "released" && this.#renewal === undefined && !hasListeners;
  }

  /** An end that the program requested is not a loss. */
  #emitEnd(reason: LossReason): void {
    const { events } = this.#terms.keeper;
    if (isOwnEnd(reason) || reason === "closed") {
      if (events?.released.hasListeners) events.released.emit({ lease: this });
    } else if (events?.lost.hasListeners) events.lost.emit({ lease: this, error: this.#lossError(reason) });
  }

  #lossError(reason: LossReason): LeaseLostError {
    return (this.#rare.error ??= new LeaseLostError(this.resource, reason));
  }

  releaseWith(others: Promise<unknown>): void {
    const rare = this.#rare;
    const before = rare.others;
    rare.others = before === undefined ? others : others.then(() => before);
  }

  /**
   * Asks the program to stop by aborting the signal. The lease stays held and renewed until it is released.
   */
  resign(reason: unknown): void {
    if (this.#ended !== undefined) return;
    const rare = this.#rare;
    rare.signal ??= new ContextSignal(this.#terms.keeper.world);
    rare.signal.abort(reason);
  }

  async #returnToKeeper(): Promise<void> {
    const renewal = this.#renewal;
    if (renewal !== undefined) this.#terms.keeper.provider.forgoRenewal?.(this.grant);
    // One request at a time. Awaiting `undefined` also lets the signal's listeners run before the release.
    await renewal?.outcome;
    await this.#terms.keeper.takeBack(this);
  }

  /** Whether the lease is renewed automatically and won't end soon because of its `maxHold`. */
  #canBeLate(endMs: number): boolean {
    return this.#terms.renewedElsewhere || (this.#terms.autoRenew && endMs < this.latestMs);
  }

  /** Emitted at most once between successful renewals. */
  #noteLate(leftMs: number): void {
    if (this.#isLate() || !this.#canBeLate(this.#nowMs() + leftMs)) return;
    this.#rare.isLate = true;
    const { events, tracing } = this.#terms.keeper;
    const renewalError = this.#rareState?.renewalError;
    tracing?.late(this, leftMs, renewalError);
    const error = renewalError === undefined ? {} : { error: renewalError };
    if (events?.renewalLate.hasListeners)
      events.renewalLate.emit({ lease: this, remainingMs: leftMs, ...error });
  }

  #nowMs(): number {
    return this.#terms.keeper.world.clock.monotonicMs();
  }

  /** Called by the alarm. */
  wake(): void {
    const leftMs = this.#look(foundLost);
    if (leftMs === 0) return;
    if (leftMs <= this.ttlMs / lateParts) this.#noteLate(leftMs);
    else if (this.#terms.renewedElsewhere) this.#noteInTime();
    // A listener of `renewal-late` may have released the lease.
    if (this.#ended !== undefined) return;
    if (this.#nextRenewalMs !== never && this.#nowMs() >= this.#nextRenewalMs) this.#requestRenewal();
    this.#setAlarm(leftMs, this.#nowMs());
  }

  #setAlarm(leftMs: number, nowMs: number): void {
    let delayMs = this.#nextRenewalMs === never ? leftMs : Math.min(leftMs, this.#nextRenewalMs - nowMs);
    const untilLateMs = leftMs - this.ttlMs / lateParts;
    if (untilLateMs > 0 && !this.#isLate() && this.#canBeLate(nowMs + leftMs))
      delayMs = Math.min(delayMs, untilLateMs + lateLookMs);
    this.#terms.keeper.alarm.set(this, nowMs + Math.max(soonestMs, delayMs), nowMs);
  }

  /**
   * The remaining time counts from when the request was sent, and so does the third of the TTL before the
   * next request.
   *
   * @param slowMs how long the last request took
   */
  #planRenewal(leftMs: number, nowMs: number, slowMs: number): void {
    if (!this.#terms.autoRenew || nowMs + leftMs >= this.latestMs) {
      this.#nextRenewalMs = never;
      return;
    }
    const untilThirdMs = leftMs - this.ttlMs + this.ttlMs / renewalsPerTtl;
    const untilNextMs = untilThirdMs - slowRequests * slowMs;
    this.#nextRenewalMs = Math.ceil(nowMs + Math.max(untilNextMs, this.ttlMs / renewalRetriesPerTtl));
  }

  /** Concurrent callers share one request. */
  #requestRenewal(): Renewal {
    if (this.#renewal !== undefined) return this.#renewal;
    const nowMs = this.#nowMs();
    const lateMs = this.#nextRenewalMs === never ? 0 : Math.max(0, nowMs - this.#nextRenewalMs);
    const isObserved = this.#terms.keeper.events?.renewed.hasListeners === true;
    const renewal = new Renewal(nowMs, lateMs, isObserved ? this.grant.remainingMs() : 0);
    this.#renewal = renewal;
    this.#nextRenewalMs = never;
    if (this.#rareState !== undefined) this.#rareState.renewalError = undefined;
    this.#sendRenewal();
    return renewal;
  }

  #sendRenewal(): void {
    const { provider } = this.#terms.keeper;
    const failed = (error: unknown) => {
      this.#rare.renewalError = error;
      this.renewed(false);
    };
    try {
      if (provider.beginRenewal !== undefined) provider.beginRenewal(this.grant, this.ttlMs, this);
      else provider.renew(this.grant, this.ttlMs).then((extended) => this.renewed(extended), failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Called by the provider when the renewal in flight has ended. */
  renewed(extended: boolean): void {
    const renewal = this.#renewal!;
    this.#renewal = undefined;
    const leftMs = this.remaining();
    if (leftMs > 0) this.#noteRenewal(extended, leftMs, renewal);
    renewal.end(extended && leftMs > 0);
  }

  #noteRenewal(extended: boolean, leftMs: number, { sentMs, lateMs, leftMs: wasLeftMs }: Renewal): void {
    const nowMs = this.#nowMs();
    if (extended) {
      this.#noteInTime();
      this.#planRenewal(leftMs, nowMs, lateMs + nowMs - sentMs);
      const { events } = this.#terms.keeper;
      if (events?.renewed.hasListeners) {
        const slackMs = Math.max(0, wasLeftMs - (nowMs - sentMs));
        events.renewed.emit({ lease: this, slackMs });
      }
    } else if (this.#terms.autoRenew) {
      this.#noteLate(leftMs);
      this.#nextRenewalMs = Math.ceil(sentMs + this.ttlMs / renewalRetriesPerTtl);
    }
    if (this.#ended === undefined) this.#setAlarm(leftMs, nowMs);
  }
}

/** Whether the program itself ended the lease with a call. */
export function isOwnEnd(reason: LossReason): boolean {
  return reason === "released" || reason === "detached";
}
