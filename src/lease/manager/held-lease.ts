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
import { type CommonTerms, type LeaseTerms, type HeldLeaseOptions, Rarity, Renewal } from "./lease-parts.js";
import type { Holding } from "./work.js";

/** A lease is renewed when a third of it has passed: two more thirds are left for what may go wrong. */
const renewalsPerTtl = 3;

/**
 * The least time between two requests of automatic renewal, as a part of the TTL: at most eight retries
 * before the end.
 */
const renewalRetriesPerTtl = 12;

/** A lease of which less than a third remains, and that should be renewed by itself, is late. */
const lateParts = 3;

/**
 * No look follows another sooner, as no timer of Node fires sooner. A ground that subtracts what has passed
 * from a length may have less left than the clock can show: looks would follow each other without end.
 */
const soonestMs = 1;

/** The look comes so much later: else rounding could make it find a little more than a third, for ever. */
const lateLookMs = 1;

/** In place of a time: no renewal is planned. */
const never = -1;

/** The answer to all whose lease was given back within the call. */
const given = Promise.resolve();

/** Who made the lease and takes it back: a `LeaseManager`, or the `LeaseServer` of a worker thread. */
export interface LeaseKeeper {
  readonly provider: Pick<Provider, "holder" | "renew" | "beginRenewal" | "forgoRenewal" | "keep">;
  readonly world: World;
  readonly alarm: Alarm;
  /** Absent where nobody can listen. */
  readonly events?: Events;
  readonly terms: CommonTerms<LeaseKeeper>;
  /**
   * Called once, when the lease has ended and no request for it is under way. Never rejects; returns nothing
   * when it is done.
   */
  takeBack(lease: HeldLease): Promise<void> | undefined;
}

/**
 * A tenure in the hands of the program. The alarm only wakes it (to renew, or to notice the end); every
 * answer is a fresh look at the clocks, and a lease that was once seen to have run out is lost for ever.
 *
 * There may be a million of them: what is the same for many, or needed by few, is kept beside them.
 */
export class HeldLease implements Lease, Holding, RenewalTaker, Sleeper {
  readonly grant: Grant;

  heapIndex = -1;

  #terms: LeaseTerms<LeaseKeeper>;
  /** On the steady clock, in whole ms: a small integer lies in the object, any other number beside it. */
  #nextRenewalMs = never;
  #renewal: Renewal | undefined;
  #rarity: Rarity | undefined;
  #ended: LossReason | undefined;

  /** @param remainingMs what the grant has just answered */
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
    // One that has run out meanwhile is found so by the first look, when those who listen know of the lease.
    const leftMs = Math.min(remainingMs, maxHoldMs);
    this.#planRenewal(leftMs, nowMs);
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

  /** The end that `maxHold` sets, on the steady clock. */
  get latestMs(): number {
    return this.#rarity?.latestMs ?? Infinity;
  }

  /** Work runs under this lease that `close` asks to stop first. */
  get hasWork(): boolean {
    return this.#rarity?.hasWork === true;
  }

  set hasWork(hasWork: boolean) {
    this.#rare.hasWork = hasWork;
  }

  /** By which it can be attached; written by its keeper when it was detached. */
  get handle(): string | undefined {
    return this.#rarity?.handle;
  }

  set handle(handle: string) {
    this.#rare.handle = handle;
  }

  /** Less than a third of it is left, and those who listen have been told. */
  #isLate(): boolean {
    return this.#rarity?.isLate === true;
  }

  #noteInTime(): void {
    if (this.#rarity !== undefined) this.#rarity.isLate = false;
  }

  get #rare(): Rarity {
    return (this.#rarity ??= new Rarity());
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

  /** Somebody asks for the resource. Only the first is told; the others want the same. */
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

  /** Why the lease ended; undefined while it is held. */
  get ended(): LossReason | undefined {
    this.remaining();
    return this.#ended;
  }

  remaining(): number {
    return this.#look();
  }

  /** @param errorOf makes the error if the look finds the end; else it is made where somebody asks for it */
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
    // Who said that it was extended has looked at the clocks.
    if (extended && this.#ended === undefined) return;
    this.assertHeld();
    throw new LeaseholdError(
      "NO_QUORUM",
      `the lease on ${JSON.stringify(this.resource)} was not renewed; it runs for ${formatDuration(this.remaining())} more`,
      { cause: this.#rarity?.renewalError },
    );
  }

  release(): Promise<void> {
    // A loss that nobody has noticed stays a loss.
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

  /** It stays held until it runs out: nothing renews it from now on. */
  letRunOut(): void {
    this.#terms = { ...this.#terms, autoRenew: false };
    this.#nextRenewalMs = never;
  }

  /**
   * Sets the terms of a lease that was acquired without a bound. Its `maxHold` counts from here, and so does
   * its ttl if it is not going to be renewed, as far as a renewal is to be had.
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
    this.#planRenewal(leftMs, nowMs);
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
   * Ends the tenure, if it has not ended yet, for an error if there is one. Resolves when the resource has
   * been given back.
   */
  end(reason: LossReason, error?: LeaseLostError): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = reason;
      if (error !== undefined) this.#rare.error = error;
      this.#terms.keeper.alarm.cancel(this);
      const returned = this.#mayReturnAtOnce() ? this.#terms.keeper.takeBack(this) : this.#returnToKeeper();
      // Set before the signal aborts: what listens there may call release().
      if (returned !== undefined) this.#rare.returned = returned;
      this.#rarity?.signal?.abort(this.#lossError(reason));
      this.#tellOfEnd(reason);
    }
    return this.#rarity?.returned ?? given;
  }

  /**
   * The program has called `release`, no request has to be waited for, and no listener would run after it. An
   * end that a look has found waits until the look is over: it may have been made in the middle of anything.
   */
  #mayReturnAtOnce(): boolean {
    const isHeard = this.#rarity?.signal !== undefined;
    return this.#ended === "released" && this.#renewal === undefined && !isHeard;
  }

  /** What the program ends itself is no loss to be told of. */
  #tellOfEnd(reason: LossReason): void {
    const { events } = this.#terms.keeper;
    if (isOwnEnd(reason) || reason === "closed") {
      if (events?.released.isHeard) events.released.tell({ lease: this });
    } else if (events?.lost.isHeard) events.lost.tell({ lease: this, error: this.#lossError(reason) });
  }

  #lossError(reason: LossReason): LeaseLostError {
    return (this.#rare.error ??= new LeaseLostError(this.resource, reason));
  }

  /** Asks the program, by the signal, to stop; the lease stays held and is renewed until it is released. */
  resign(reason: unknown): void {
    if (this.#ended !== undefined) return;
    const rare = this.#rare;
    rare.signal ??= new ContextSignal(this.#terms.keeper.world);
    rare.signal.abort(reason);
  }

  async #returnToKeeper(): Promise<void> {
    const renewal = this.#renewal;
    if (renewal !== undefined) this.#terms.keeper.provider.forgoRenewal?.(this.grant);
    // One request at a time; awaiting nothing also lets the signal's listeners run before the resource is
    // given back.
    await renewal?.outcome;
    await this.#terms.keeper.takeBack(this);
  }

  /** It is renewed by itself, and not about to end as it was told to. */
  #canBeLate(endMs: number): boolean {
    return this.#terms.renewedElsewhere || (this.#terms.autoRenew && endMs < this.latestMs);
  }

  /** Once, until a renewal succeeds. */
  #noteLate(leftMs: number): void {
    if (this.#isLate() || !this.#canBeLate(this.#nowMs() + leftMs)) return;
    this.#rare.isLate = true;
    const { events } = this.#terms.keeper;
    const renewalError = this.#rarity?.renewalError;
    const error = renewalError === undefined ? {} : { error: renewalError };
    if (events?.renewalLate.isHeard) events.renewalLate.tell({ lease: this, remainingMs: leftMs, ...error });
  }

  #nowMs(): number {
    return this.#terms.keeper.world.clock.monotonicMs();
  }

  /** From the alarm. */
  wake(): void {
    const leftMs = this.#look(foundLost);
    if (leftMs === 0) return;
    if (leftMs <= this.ttlMs / lateParts) this.#noteLate(leftMs);
    else if (this.#terms.renewedElsewhere) this.#noteInTime();
    // Who was told that it is late may have released it.
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
   * What remains counts from when the request was sent, and so does the third of the TTL after which to ask
   * again.
   */
  #planRenewal(leftMs: number, nowMs: number): void {
    if (!this.#terms.autoRenew || nowMs + leftMs >= this.latestMs) {
      this.#nextRenewalMs = never;
      return;
    }
    const untilThirdMs = leftMs - this.ttlMs + this.ttlMs / renewalsPerTtl;
    this.#nextRenewalMs = Math.ceil(nowMs + Math.max(untilThirdMs, this.ttlMs / renewalRetriesPerTtl));
  }

  /** Callers at the same time share one request. */
  #requestRenewal(): Renewal {
    if (this.#renewal !== undefined) return this.#renewal;
    const renewal = new Renewal(this.#nowMs());
    this.#renewal = renewal;
    this.#nextRenewalMs = never;
    if (this.#rarity !== undefined) this.#rarity.renewalError = undefined;
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

  /** The renewal under way has ended. From the provider. */
  renewed(extended: boolean): void {
    const renewal = this.#renewal!;
    this.#renewal = undefined;
    const leftMs = this.remaining();
    if (leftMs > 0) this.#noteRenewal(extended, leftMs, renewal.sentMs);
    renewal.end(extended && leftMs > 0);
  }

  #noteRenewal(extended: boolean, leftMs: number, sentMs: number): void {
    const nowMs = this.#nowMs();
    if (extended) {
      this.#noteInTime();
      this.#planRenewal(leftMs, nowMs);
    } else if (this.#terms.autoRenew) {
      this.#noteLate(leftMs);
      this.#nextRenewalMs = Math.ceil(sentMs + this.ttlMs / renewalRetriesPerTtl);
    }
    if (this.#ended === undefined) this.#setAlarm(leftMs, nowMs);
  }
}

/** The program itself has ended it, by a call of its own. */
export function isOwnEnd(reason: LossReason): boolean {
  return reason === "released" || reason === "detached";
}
