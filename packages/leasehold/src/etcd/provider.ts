import { readBothClocks } from "../common/both-clocks.js";
import { relied } from "../common/clock-rates.js";
import { LeaseholdError, LeaseLostError } from "../lease/errors.js";
import { spent } from "../lease/handle.js";
import type { World } from "../common/ports.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Detachment,
  Grant,
  Place,
  Provider,
  ProviderEvents,
} from "../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../lease/types.js";
import { type CoreAddress, wholeSeconds } from "./terms.js";
import {
  type CallLimits,
  type CoreClient,
  type Entry,
  type Found,
  type Moment,
  sharedLimits,
} from "./core-client.js";
import { coreGuarantees } from "./guarantees.js";
import { hintOf, lifeMsMax } from "./hints.js";
import { CoreInspection } from "./inspection.js";
import { Keys } from "./keys.js";
import { FairQueues } from "./fair-queue.js";
import { decodeRecord, encodeRecord, type HolderRecord, tokenOf } from "./record.js";
import { Tenure } from "./tenure.js";
import { Waiters } from "./waiters.js";

/**
 * Time limit for a failed attempt to remove what it may have created, ms. Afterwards the core's lease
 * expires.
 */
const withdrawMsMax = 1_000;

/** Time limit for a release, ms. Afterwards the lease expires. */
const releaseMsMax = 2_000;

/**
 * Divisor of the TTL: one renewal may take a third of it, so that the provider contract can repeat it in
 * time.
 */
const renewalsPerTtl = 3;

/**
 * A renewal during a change of leader is repeated at once; after a third change in a row it waits for the
 * next renewal.
 */
const renewalTriesMax = 2;

/** Attempts to replace a record that another client changes at the same time. */
const replacementsMax = 5;

/** Waiters retry at these intervals, ms, in case the watch that reports a release fails. */
const retryMsMin = 1_000;
const retryMsMax = 15_000;

export interface CoreProviderParts {
  readonly core: CoreClient;
  readonly world: World;
  readonly address: CoreAddress;
  /** The participant's name and incarnation. */
  readonly holder: string;
  readonly label: string;
  /** Draws a unique id, 1 to 2^63 - 1. */
  drawLeaseId(): bigint;
}

/**
 * Leases of a consistent core. A tenure is a key that is attached to a lease of the core: the client that
 * creates the key holds the resource, the create revision is the token, and when the core's lease ends the
 * key is deleted with it.
 */
export class CoreProvider implements Provider {
  readonly guarantees: Guarantees;
  readonly inspection: CoreInspection;
  readonly holder: string;
  readonly #parts: CoreProviderParts;
  readonly #core: CoreClient;
  readonly #keys: Keys;
  readonly #waiters: Waiters;
  readonly #queues: FairQueues;
  /** Granted tenures that have not been released, by resource. */
  readonly #tenures = new Map<string, Tenure>();
  /**
   * Leases of tenures that a clock ended early. The protected work may continue, so their keys are no
   * leftovers.
   */
  readonly #endedEarly = new Set<bigint>();
  #events: ProviderEvents | undefined;
  #isClosed = false;

  constructor(parts: CoreProviderParts) {
    const { core, world, address, holder } = parts;
    this.#parts = parts;
    this.#core = core;
    this.#keys = new Keys(address.keyPrefix);
    this.holder = holder;
    this.guarantees = coreGuarantees(address);
    const { clock, timers, random } = world;
    const hint = (resource: string) => this.#events?.hint(resource) ?? false;
    this.#waiters = new Waiters({ core, timers, random, hint });
    this.#queues = new FairQueues({
      core,
      world,
      keys: this.#keys,
      clockRateError: address.clockRateError,
      holder,
      drawLeaseId: () => parts.drawLeaseId(),
      secondsOf: (ttlMs) => wholeSeconds(ttlMs, address),
    });
    this.inspection = new CoreInspection({ core, clock, timers, keys: this.#keys, holder });
  }

  attach(events: ProviderEvents): void {
    this.#events = events;
  }

  async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const { resource, timeoutMs } = request;
    const limits = sharedLimits({ timeoutMs, cancellation }, this.#parts.world.clock);
    // A participant attempts only after its own tenure is over.
    this.#end(this.#tenures.get(resource));
    try {
      // The read costs a round trip, but saves the core a write if the resource is held.
      const found = await this.#core.read(this.#keys.of(resource), limits);
      const { entry } = found;
      if (entry !== undefined && !this.#isLeftover(entry)) return this.#refused(request, found, entry);
      if (entry !== undefined) await this.#core.revokeLease(entry.leaseId, limits);
      return await this.#take(request, limits);
    } catch (error) {
      return outcomeOf(error);
    }
  }

  /**
   * Moves the key to a lease of this participant, if the record has this pass. Revocation or expiry of the
   * earlier lease then does not delete the key.
   */
  async adopt(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome> {
    const { resource, timeoutMs } = request;
    const limits = sharedLimits({ timeoutMs, cancellation }, this.#parts.world.clock);
    this.#end(this.#tenures.get(resource));
    try {
      const { entry } = await this.#core.read(this.#keys.of(resource), limits);
      return await this.#handOn(request, detachment, entry, limits);
    } catch (error) {
      return outcomeOf(error);
    }
  }

  async detach(grant: Grant, pass: string): Promise<boolean> {
    const tenure = own(grant);
    tenure.isDetached = true;
    const limits = sharedLimits({ timeoutMs: releaseMsMax }, this.#parts.world.clock);
    let { entry } = await this.#core.read(this.#keys.of(tenure.resource), limits);
    for (let tries = 0; tries < replacementsMax && entry !== undefined; tries += 1) {
      const record = decodeRecord(entry.value);
      if (record?.nonce !== tenure.nonce || record.asked?.broken === true) return false;
      if (record.detached === pass) {
        tenure.watching?.stop();
        if (this.#tenures.get(tenure.resource) === tenure) this.#tenures.delete(tenure.resource);
        return true;
      }
      ({ entry } = await this.#core.replace(entry, encodeRecord({ ...record, detached: pass }), limits));
    }
    return false;
  }

  async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const tenure = own(grant);
    const { clock } = this.#parts.world;
    const timeoutMs = Math.min(tenure.remainingMs(), ttlMs / renewalsPerTtl);
    const limits = sharedLimits({ timeoutMs }, clock);
    for (let tries = 0; tries < renewalTriesMax; tries += 1) {
      if (tenure.isBroken || tenure.isDetached || tenure.remainingMs() === 0) return false;
      const begun = readBothClocks(clock);
      const refreshed = await this.#core.refreshLease(tenure.leaseId, limits);
      if (refreshed.seconds <= 0) return this.#lose(tenure, "the core's lease has ended");
      const isConfirmed = await this.#confirm(tenure, refreshed, limits);
      if (tenure.isBroken || tenure.remainingMs() === 0) return false;
      if (!isConfirmed) continue;
      tenure.extend(begun, this.#leaseMs(ttlMs, refreshed.seconds));
      return true;
    }
    return false;
  }

  async release(grant: Grant, isUnused = false): Promise<void> {
    const tenure = own(grant);
    this.#end(tenure);
    if (isUnused) await this.#revoke(tenure);
    else if (tenure.lossReason === "clock-fault") this.#after(tenure, tenure.leaseMs, () => undefined);
    else if (tenure.promisedMs > 0) this.#after(tenure, tenure.promisedMs, () => this.#revokeLate(tenure));
    else await this.#revoke(tenure);
  }

  /**
   * Until then the protected work may continue. After a clock fault, only the core knows when the lease ends.
   */
  #after(tenure: Tenure, delayMs: number, run: () => void): void {
    this.#endedEarly.add(tenure.leaseId);
    this.#parts.world.timers.after(delayMs, () => {
      this.#endedEarly.delete(tenure.leaseId);
      run();
    });
  }

  /** The lease belongs to this tenure alone, so revoking it deletes no later tenure's key. */
  #revoke({ leaseId }: Tenure): Promise<void> {
    return this.#core.revokeLease(leaseId, { timeoutMs: releaseMsMax });
  }

  #revokeLate(tenure: Tenure): void {
    // Best effort: the lease also expires.
    if (!this.#isClosed) this.#revoke(tenure).catch(() => undefined);
  }

  enterQueue(resource: string, ttlMs: number, timeoutMs: number, cancellation: Cancellation): Promise<Place> {
    const limits = sharedLimits({ timeoutMs, cancellation }, this.#parts.world.clock);
    return this.#queues.enter(resource, ttlMs, limits);
  }

  async query(resource: string, timeoutMs: number): Promise<HolderHint> {
    try {
      const { entry } = await this.#core.read(this.#keys.of(resource), { timeoutMs });
      if (entry === undefined) return { state: "free", confirmed: true };
      return hintOf(entry, await lifeMsMax(this.#core, entry, { timeoutMs }));
    } catch (error) {
      if (error instanceof LeaseholdError) return { state: "unknown" };
      throw error;
    }
  }

  async list(
    prefix: string,
    timeoutMs: number,
    onIncomplete?: (why: string) => void,
  ): Promise<ResourceHint[]> {
    try {
      const { entries } = await this.#core.list(this.#keys.of(prefix), { timeoutMs });
      return entries.map((entry) => ({ resource: this.#keys.resourceOf(entry.key), ...hintOf(entry) }));
    } catch (error) {
      if (onIncomplete === undefined || !(error instanceof LeaseholdError)) throw error;
      onIncomplete(error.message);
      return [];
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.inspection.close();
    this.#waiters.close();
    for (const tenure of this.#tenures.values()) this.#end(tenure);
    await this.#queues.close();
    this.#core.close();
  }

  /** Creates the key, attached to a lease of its own. */
  async #take(request: AttemptRequest, limits: CallLimits): Promise<AttemptOutcome> {
    const { resource, ttlMs, data } = request;
    const { world, holder, label } = this.#parts;
    const leaseId = this.#parts.drawLeaseId();
    const nonce = leaseId.toString(16);
    const begun = readBothClocks(world.clock);
    try {
      const { seconds } = await this.#core.grantLease(
        leaseId,
        wholeSeconds(ttlMs, this.#parts.address),
        limits,
      );
      const record: HolderRecord = {
        holder,
        label,
        nonce,
        seconds,
        spreadMs: this.#waiters.handedOnMs(resource),
        data,
      };
      const found = await this.#core.create(this.#keys.of(resource), encodeRecord(record), leaseId, limits);
      // The answer may have been lost: the record shows whether the key is ours.
      const { entry } = found;
      if (decodeRecord(entry.value)?.nonce !== nonce) {
        await this.#withdraw(leaseId);
        return this.#refused(request, found, entry);
      }
      const parts = { resource, token: entry.createRevision, nonce, leaseId };
      const tenure = new Tenure(parts, world.clock, begun, this.#leaseMs(ttlMs, seconds));
      this.#begin(tenure, entry);
      return { kind: "granted", grant: tenure };
    } catch (error) {
      await this.#withdraw(leaseId);
      return outcomeOf(error);
    }
  }

  async #handOn(
    request: AttemptRequest,
    { token, pass }: Detachment,
    seen: Entry | undefined,
    limits: CallLimits,
  ): Promise<AttemptOutcome> {
    const { resource, ttlMs, data } = request;
    const { world, holder, label, address } = this.#parts;
    const detachedIn = (entry: Entry | undefined) => {
      const record = entry && decodeRecord(entry.value);
      const isIt = record?.detached === pass && record.asked?.broken !== true;
      return isIt && tokenOf(entry!, record) === token ? record : undefined;
    };
    if (detachedIn(seen) === undefined) return gone(resource);
    const leaseId = this.#parts.drawLeaseId();
    const nonce = leaseId.toString(16);
    const begun = readBothClocks(world.clock);
    const { seconds } = await this.#core.grantLease(leaseId, wholeSeconds(ttlMs, address), limits);
    let entry = seen;
    for (let tries = 0; tries < replacementsMax; tries += 1) {
      const record = detachedIn(entry);
      if (record === undefined) break;
      const spreadMs = this.#waiters.handedOnMs(resource);
      const attached = (record.attached ?? 0) + 1;
      const next = encodeRecord({ holder, label, nonce, seconds, spreadMs, data, attached });
      // Without an answer the key may be attached to the new lease, which therefore must expire instead of
      // being revoked.
      ({ entry } = await this.#core.replace(entry!, next, limits, leaseId));
      if (entry === undefined || decodeRecord(entry.value)?.nonce !== nonce) continue;
      const parts = { resource, token: token + 1n, nonce, leaseId };
      const tenure = new Tenure(parts, world.clock, begun, this.#leaseMs(ttlMs, seconds));
      this.#begin(tenure, entry);
      return { kind: "granted", grant: tenure };
    }
    await this.#withdraw(leaseId);
    return gone(resource);
  }

  /**
   * The duration of the holder's lease, ms: it ends before the core's, whatever the errors of both clocks.
   */
  #leaseMs(ttlMs: number, seconds: number): number {
    return Math.min(ttlMs, relied(seconds * 1_000, this.#parts.address.clockRateError));
  }

  /**
   * Whether the key is this process's own, and given up: a release or a withdrawal did not reach the core.
   */
  #isLeftover({ value, leaseId }: Entry): boolean {
    const record = decodeRecord(value);
    const isOurs = leaseId !== 0n && record?.holder === this.holder && record.detached === undefined;
    return isOurs && !this.#endedEarly.has(leaseId);
  }

  #refused({ resource, waiting }: AttemptRequest, { revision }: Moment, entry: Entry): AttemptOutcome {
    const record = decodeRecord(entry.value);
    const retryInMs = Math.min(retryMsMax, Math.max(retryMsMin, 1_000 * (record?.seconds ?? 0)));
    if (waiting) this.#waiters.refused(resource, entry, revision, retryInMs);
    return { kind: "held", retryInMs, ...(record !== undefined && { holder: record.holder }) };
  }

  async #withdraw(leaseId: bigint): Promise<void> {
    try {
      await this.#core.revokeLease(leaseId, { timeoutMs: withdrawMsMax });
    } catch (error) {
      // The lease expires, and until then a later attempt of this process recognises the key.
      if (!(error instanceof LeaseholdError)) throw error;
    }
  }

  #begin(tenure: Tenure, entry: Entry): void {
    const { resource } = tenure;
    this.#waiters.forget(resource);
    this.#tenures.set(resource, tenure);
    // The read at every renewal is decisive; the watch only reports a request or a deleted key sooner.
    tenure.watching = this.#core.watch({ key: entry.key, isPrefix: false }, entry.modRevision + 1n, {
      written: (written) => this.#look(tenure, written),
      deleted: () => this.#look(tenure, undefined),
      missed: () => undefined,
    });
  }

  /**
   * A refresh counts only if a read after it finds the key in place, and the term has not changed since
   * before the refresh. The read is linearizable: the leader of that term was still the leader when it
   * answered, after the refresh. Otherwise a deposed leader that does not know it could refresh a lease that
   * its successor is about to end (etcd 15247), or one that has just ended (etcd 14758).
   */
  async #confirm(tenure: Tenure, refreshed: Moment, limits: CallLimits): Promise<boolean> {
    const found: Found = await this.#core.read(this.#keys.of(tenure.resource), limits);
    this.#look(tenure, found.entry);
    return found.term === refreshed.term;
  }

  /** Adopts the present state of a tenure's key. */
  #look(tenure: Tenure, entry: Entry | undefined): void {
    if (tenure.lost !== undefined) return;
    const record = entry === undefined ? undefined : decodeRecord(entry.value);
    const isIt = entry !== undefined && tokenOf(entry, record) === tenure.token;
    if (!isIt || record?.nonce !== tenure.nonce) {
      this.#lose(tenure, "its key has gone from the core");
      return;
    }
    const { asked } = record;
    if (asked === undefined || (asked.by === tenure.asked?.by && asked.broken === tenure.asked.broken))
      return;
    // A broken lease stays broken.
    tenure.asked = { by: asked.by, broken: asked.broken || tenure.isBroken };
    this.#events?.releaseRequested?.({ resource: tenure.resource, ...asked });
  }

  #lose(tenure: Tenure, why: string): false {
    if (tenure.remainingMs() > 0) {
      tenure.lost = "expired";
      this.#events?.lost(tenure, new LeaseLostError(tenure.resource, "expired", why));
    }
    return false;
  }

  #end(tenure: Tenure | undefined): void {
    if (tenure === undefined) return;
    tenure.lost ??= "released";
    tenure.watching?.stop();
    if (this.#tenures.get(tenure.resource) === tenure) this.#tenures.delete(tenure.resource);
  }
}

function outcomeOf(error: unknown): AttemptOutcome {
  if (error instanceof LeaseholdError) return { kind: "failed", error };
  throw error;
}

function gone(resource: string): AttemptOutcome {
  const why = "it was attached before, released, broken, or has run out";
  return { kind: "failed", error: spent(resource, why) };
}

function own(grant: Grant): Tenure {
  if (grant instanceof Tenure) return grant;
  throw new TypeError("a grant of another provider");
}
