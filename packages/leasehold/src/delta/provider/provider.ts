import { LeaseholdError, LeaseLostError } from "../../lease/errors.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Detachment,
  Grant,
  Provider,
  ProviderEvents,
} from "../../lease/provider.js";
import { dataFieldBytes } from "../../lease/tenure-data.js";
import type { Timer } from "../../common/ports.js";
import type { Guarantees, HolderHint, ResourceHint } from "../../lease/types.js";
import { encodeRecord } from "../record/codec.js";
import { digitsMax } from "../record/fields.js";
import type { Driver } from "../driver.js";
import type { Protocol } from "../effects.js";
import type { Farm } from "../farm/farm.js";
import { noMajority } from "../failures.js";
import { holderHintOf, resourceHintOf } from "../holder-view.js";
import { DeltaInspection } from "./inspection.js";
import type { DeltaSettings, LeaseProtocol, Listing } from "../lease-protocol.js";
import type { Tenure } from "../tenure.js";

/** How often the farm is tended within the validity period of one look while an operation is in flight. */
const tendsPerLease = 8;

/** A string of the length of a pass. */
const passMax = "0".repeat(16);

/** The greatest epoch and number in the calculation of a record's length. */
const numberMax = 10n ** BigInt(digitsMax) - 1n;

export interface DeltaProviderParts {
  readonly driver: Driver;
  readonly farm: Farm;
  readonly protocol: LeaseProtocol;
  readonly settings: DeltaSettings;
  /** Name and incarnation: the writer of the protocol's records. */
  readonly holder: string;
  readonly label?: string | undefined;
  /** The longest record that every store takes. */
  readonly bytesMax: number;
}

/** A tenure that a clock ended early by the steady clock. */
interface EarlyEnd {
  readonly tenure: Tenure;
  isReleasing: boolean;
}

export class DeltaGrant implements Grant {
  readonly tenure: Tenure;
  /** Whether the holder was notified that it should release the resource. */
  isReported = false;
  readonly #driver: Driver;

  constructor(tenure: Tenure, driver: Driver) {
    this.tenure = tenure;
    this.#driver = driver;
  }

  get resource(): string {
    return this.tenure.resource;
  }

  get token(): bigint {
    return this.tenure.token;
  }

  get lossReason() {
    return this.tenure.lost;
  }

  remainingMs(): number {
    return this.tenure.remainingMs(this.#driver.now());
  }
}

/**
 * Leases on shared storage as a ground for the waist: runs the algorithm on a farm, and turns its results
 * into outcomes.
 */
export class DeltaProvider implements Provider {
  readonly guarantees: Guarantees;
  readonly inspection: DeltaInspection;
  readonly holder: string;
  readonly #driver: Driver;
  readonly #farm: Farm;
  readonly #protocol: LeaseProtocol;
  readonly #label: string;
  readonly #bytesMax: number;
  /** The bytes of the longest record without its name and data. */
  readonly #bytesBesideName: number;
  readonly #delayMs: number;
  /** By resource: the last grant that has not been released. */
  readonly #grants = new Map<string, DeltaGrant>();
  /**
   * By resource: tenures that a clock ended early, whose protected work may still be running. This process's
   * own record does not keep it from acquiring the resource again.
   */
  readonly #endedEarly = new Map<string, EarlyEnd>();
  #events: ProviderEvents | undefined;
  /** Operations in flight; the farm is tended while there are any. */
  #underWay = 0;
  #isClosed = false;
  #tendTimer: Timer | undefined;

  constructor(parts: DeltaProviderParts) {
    const { driver, farm, protocol, settings, holder } = parts;
    this.#driver = driver;
    this.#farm = farm;
    this.#protocol = protocol;
    this.#label = parts.label ?? "";
    this.#bytesMax = parts.bytesMax;
    this.#delayMs = settings.delayMs;
    this.holder = holder;
    const { exclusion, token, progress, assumptions } = protocol.promise;
    this.guarantees = {
      ground: "delta",
      exclusion,
      token,
      progress,
      assumptions,
      ttlMinMs: protocol.leaseDelaysMin * settings.delayMs,
      ttlMaxMs: settings.leaseMsMax,
      // No algorithm compares one participant's clock with another's.
      maxClockSkewMs: 0,
      takeoverMsMax: protocol.takeoverMsMax,
      data: true,
      attach: protocol.detach !== undefined,
      fair: "none",
      handOver: false,
    };
    this.#bytesBesideName = this.#bytesWithoutName() - jsonBytes("");
    this.inspection = new DeltaInspection({
      farm,
      protocol,
      pollMs: settings.pollMs,
      holder,
      timers: driver.world.timers,
      run: (work) => this.#run(work),
      list: (prefix, timeoutMs) => this.list(prefix, timeoutMs),
      now: () => driver.now(),
    });
  }

  attach(events: ProviderEvents): void {
    this.#events = events;
  }

  attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    return this.#attempt(request, undefined, cancellation);
  }

  adopt(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome> {
    return this.#attempt(request, detachment, cancellation);
  }

  async detach(grant: Grant, pass: string): Promise<boolean> {
    const { tenure } = own(grant);
    tenure.isDetached = true;
    if (this.#protocol.detach === undefined) return false;
    const isNoted = await this.#run(this.#protocol.detach(tenure, pass));
    if (isNoted && this.#grants.get(tenure.resource) === grant) this.#grants.delete(tenure.resource);
    return isNoted;
  }

  async #attempt(
    request: AttemptRequest,
    adopts: Detachment | undefined,
    cancellation: Cancellation | undefined,
  ): Promise<AttemptOutcome> {
    const { resource, ttlMs, timeoutMs, data } = request;
    const error = this.#whyTooLong(resource, data);
    if (error !== undefined) return { kind: "failed", error };
    const deadlineMs = this.#driver.now().monotonicMs + timeoutMs;
    // A detached lease was never this participant's own: it may be attached.
    const retryInMs = adopts === undefined ? this.#promisedMs(resource) : 0;
    if (retryInMs > 0) return { kind: "held", retryInMs };
    // A participant that begins an attempt has given up its former grant: nothing may renew that any longer.
    this.#forget(resource);
    const tending = this.#tend(cancellation);
    if (tending !== undefined) await tending;
    const now = this.#driver.now();
    if (this.#farm.ready(now) < this.#farm.majority) return { kind: "failed", error: this.#farm.whyNot(now) };
    const protocol = this.#protocol.attempt({ resource, leaseMs: ttlMs, deadlineMs, data, adopts });
    const result = await this.#underGate(protocol, cancellation);
    if (result.kind !== "granted") return result;
    const grant = new DeltaGrant(result.tenure, this.#driver);
    this.#grants.set(resource, grant);
    return { kind: "granted", grant };
  }

  /** Milliseconds for which the protected work of an earlier tenure, or its release, may still run. */
  #promisedMs(resource: string): number {
    const end = this.#endedEarly.get(resource);
    if (end === undefined) return 0;
    const leftMs = end.tenure.promisedUntilMs - this.#driver.now().monotonicMs;
    if (leftMs > 0) return leftMs;
    if (end.isReleasing) return this.#delayMs;
    this.#endedEarly.delete(resource);
    return 0;
  }

  async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const { tenure } = own(grant);
    const isLonger = await this.#run(this.#protocol.renew(tenure, ttlMs));
    this.#reportRequest(own(grant));
    if (tenure.lost !== undefined && this.#grants.get(tenure.resource) === grant)
      this.#events?.lost(grant, new LeaseLostError(tenure.resource, tenure.lost));
    return isLonger;
  }

  async release(grant: Grant, isUnused = false): Promise<void> {
    const { tenure } = own(grant);
    tenure.lost ??= "released";
    if (this.#grants.get(tenure.resource) === grant) this.#grants.delete(tenure.resource);
    const promisedMs = tenure.promisedUntilMs - this.#driver.now().monotonicMs;
    if (isUnused || (tenure.lost !== "clock-fault" && promisedMs <= 0))
      await this.#run(this.#protocol.release(tenure));
    else this.#releaseLate(tenure, promisedMs);
  }

  /** After a clock fault it is not released at all: others then wait by their own clocks. */
  #releaseLate(tenure: Tenure, promisedMs: number): void {
    const { resource } = tenure;
    for (const other of this.#endedEarly.keys()) this.#promisedMs(other);
    const end: EarlyEnd = { tenure, isReleasing: false };
    this.#endedEarly.set(resource, end);
    if (tenure.lost === "clock-fault") return;
    this.#driver.world.timers.after(promisedMs, () => {
      // This participant may acquire the resource again.
      if (this.#isClosed || this.#endedEarly.get(resource) !== end) return;
      end.isReleasing = true;
      // It expires without a release, too.
      void this.#run(this.#protocol.release(tenure))
        .catch(() => undefined)
        .finally(() => this.#endedEarly.delete(resource));
    });
  }

  async query(resource: string, timeoutMs: number): Promise<HolderHint> {
    return holderHintOf(await this.#run(this.#protocol.look(resource, timeoutMs)));
  }

  async list(
    prefix: string,
    timeoutMs: number,
    onIncomplete?: (why: string) => void,
  ): Promise<ResourceHint[]> {
    const listing = await this.#run(this.#protocol.list(prefix, timeoutMs));
    const error = this.#incompleteness(listing);
    if (error !== undefined) {
      if (onIncomplete === undefined) throw error;
      onIncomplete(error.message);
    }
    return listing.held.map(({ resource, holderView }) => resourceHintOf(resource, holderView));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.inspection.close();
    await this.#farm.leave(this.#driver);
    await this.#driver.close();
  }

  #run<Result>(protocol: Protocol<Result>): Promise<Result> {
    const tending = this.#tend();
    return tending === undefined ? this.#underGate(protocol) : tending.then(() => this.#underGate(protocol));
  }

  /**
   * An operation may outlast the validity of the last look at the farm: the paper's contend waits for Δ and
   * more.
   */
  async #underGate<Result>(protocol: Protocol<Result>, cancellation?: Cancellation): Promise<Result> {
    if (this.#underWay++ === 0) this.#keepTending();
    try {
      return await this.#driver.run(protocol, { filter: this.#farm, cancellation });
    } finally {
      if (--this.#underWay === 0) this.#tendTimer?.cancel();
    }
  }

  #keepTending(): void {
    const everyMs = this.guarantees.ttlMaxMs / tendsPerLease;
    this.#tendTimer = this.#driver.world.timers.after(everyMs, () => {
      void this.#farm.tend(this.#driver);
      this.#keepTending();
    });
  }

  /**
   * Waits only if the last look at the farm may expire before the next one ends, which takes δ: a held lease
   * must not wait for a silent store.
   */
  #tend(cancellation?: Cancellation): Promise<void> | undefined {
    const tending = this.#farm.tend(this.#driver);
    if (tending === undefined) return undefined;
    if (this.#farm.ready(this.#driver.now(), this.#delayMs) >= this.#farm.majority) return undefined;
    return new Promise<void>((resolve, reject) => {
      if (cancellation !== undefined) cancellation.onCancel = resolve;
      tending.then(resolve, reject);
    });
  }

  #whyTooLong(resource: string, data: string | undefined): LeaseholdError | undefined {
    const bytes = this.#bytesBesideName + jsonBytes(resource);
    if (bytes > this.#bytesMax) return tooLong(resource, this.#bytesMax);
    const dataBytes = data === undefined ? 0 : dataFieldBytes(data);
    if (bytes + dataBytes <= this.#bytesMax) return undefined;
    return new LeaseholdError(
      "INVALID_CONFIG",
      `data: it takes ${dataBytes} bytes, and a store has ${this.#bytesMax - bytes} left beside the record of ${JSON.stringify(resource)}, of at most ${bytes} bytes`,
    );
  }

  /** The length of the longest record with an empty name, and without data. */
  #bytesWithoutName(): number {
    return encodeRecord({
      resource: "",
      epoch: numberMax,
      number: numberMax,
      writer: this.holder,
      nonce: Number.MAX_SAFE_INTEGER,
      state: "held",
      leaseMs: this.guarantees.ttlMaxMs,
      delayMs: this.guarantees.ttlMaxMs,
      label: this.#label,
      ...(this.guarantees.attach && { detached: passMax }),
    }).length;
  }

  #forget(resource: string): void {
    const grant = this.#grants.get(resource);
    if (grant === undefined) return;
    grant.tenure.lost ??= "released";
    this.#grants.delete(resource);
  }

  /**
   * Reports a request for the resource to the waist once, and once more if the lease is broken after that.
   */
  #reportRequest(grant: DeltaGrant): void {
    const { asked, resource } = grant.tenure;
    if (asked === undefined || grant.isReported) return;
    grant.isReported = asked.broken;
    if (!asked.broken) grant.tenure.asked = undefined;
    this.#events?.releaseRequested?.({ resource, by: asked.by, broken: asked.broken });
  }

  /** A majority of the stores knows every lease that is held; with fewer, some may be missing. */
  #incompleteness({ answered, errors }: Listing): LeaseholdError | undefined {
    const { size, majority } = this.#farm;
    const listed = answered.filter(Boolean).length;
    return listed >= majority ? undefined : noMajority(size, majority, listed, errors);
  }
}

const encoder = new TextEncoder();

/** The length of a string in a record, bytes. */
function jsonBytes(text: string): number {
  return encoder.encode(JSON.stringify(text)).length;
}

function tooLong(resource: string, bytesMax: number): LeaseholdError {
  return new LeaseholdError(
    "INVALID_NAME",
    `the record of ${JSON.stringify(resource)} would exceed the ${bytesMax} bytes that every store takes; use a shorter name or label`,
  );
}

function own(grant: Grant): DeltaGrant {
  if (grant instanceof DeltaGrant) return grant;
  throw new TypeError("the grant is another provider's");
}
