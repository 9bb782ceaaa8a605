import type { LeaseLostError } from "../lease/errors.js";
import { spent } from "../lease/handle.js";
import type { Clock, Timers, World } from "../common/ports.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Detachment,
  Grant,
  Place,
  Provider,
  ProviderEvents,
  ReleaseRequest,
} from "../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../lease/types.js";
import {
  cutOff,
  describeTenure,
  type MemoryGround,
  type MemoryParticipant,
  MemoryTenure,
} from "./memory-ground.js";
import { MemoryInspection } from "./memory-inspection.js";
import { ProcessSwitch } from "./process-switch.js";

/** The shortest lease. Tests in real time need short ones. */
const ttlMsMin = 10;

/** Timeout of a renewal, as a fraction of the TTL, so that a holder that is cut off can try several times. */
const renewalTimeoutsPerTtl = 12;

export interface MemoryProviderOptions {
  /** The participant's name; an incarnation is appended. */
  readonly name: string;
  /** The longest lease, in milliseconds. */
  readonly ttlMaxMs: number;
  /** Disconnects or stops the participant. */
  readonly process?: ProcessSwitch;
}

/** Provides leases within one process, on a {@link MemoryGround} that several participants share. */
export class MemoryProvider implements Provider, MemoryParticipant {
  readonly guarantees: Guarantees;
  readonly holder: string;
  readonly clock: Clock;
  readonly inspection: MemoryInspection;

  readonly #ground: MemoryGround;
  readonly #timers: Timers;
  readonly #process: ProcessSwitch;
  #events: ProviderEvents | undefined;

  constructor(ground: MemoryGround, world: World, options: MemoryProviderOptions) {
    this.#ground = ground;
    this.clock = world.clock;
    this.#timers = world.timers;
    this.#process = options.process ?? new ProcessSwitch();
    this.holder = ground.holderName(options.name);
    this.guarantees = memoryGuarantees(options.ttlMaxMs);
    this.inspection = new MemoryInspection(ground, this.holder, this.#timers, this.#process);
    ground.join(this);
  }

  attach(events: ProviderEvents): void {
    this.#events = events;
  }

  async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const { resource, ttlMs, timeoutMs, data } = request;
    if (!(await this.#reaches(timeoutMs, cancellation)))
      return { kind: "failed", error: cutOff(this.holder) };
    const tenure = this.#ground.take(resource, this, ttlMs, data);
    if (tenure.owner === this && tenure.pass === undefined && tenure.remainingMs() > 0)
      return { kind: "granted", grant: tenure };
    return { kind: "held", holder: tenure.owner.holder, retryInMs: tenure.leftMs() };
  }

  async detach(grant: Grant, pass: string): Promise<boolean> {
    const tenure = own(grant);
    if (!this.#process.isConnected || tenure.remainingMs() === 0) return false;
    tenure.pass = pass;
    return true;
  }

  async adopt(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome> {
    const { resource, ttlMs, timeoutMs, data } = request;
    if (!(await this.#reaches(timeoutMs, cancellation)))
      return { kind: "failed", error: cutOff(this.holder) };
    const grant = this.#ground.adopt(resource, detachment, this, ttlMs, data);
    if (grant !== undefined) return { kind: "granted", grant };
    return { kind: "failed", error: spent(resource, "it no longer exists") };
  }

  async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const endMonotonicMs = this.clock.monotonicMs() + ttlMs;
    const endWallMs = this.clock.wallMs() + ttlMs;
    if (!(await this.#reaches(ttlMs / renewalTimeoutsPerTtl))) return false;
    return own(grant).extendTo(endMonotonicMs, endWallMs);
  }

  async release(grant: Grant): Promise<void> {
    const tenure = own(grant);
    tenure.abandoned = true;
    if (this.#process.isConnected) this.#ground.free(tenure);
  }

  async enterQueue(
    resource: string,
    ttlMs: number,
    timeoutMs: number,
    cancellation: Cancellation,
  ): Promise<Place> {
    if (!(await this.#reaches(timeoutMs, cancellation))) throw cutOff(this.holder);
    const owner = { clock: this.clock, timers: this.#timers, process: this.#process };
    return this.#ground.queues.enter(resource, owner, ttlMs);
  }

  async query(resource: string, timeoutMs: number): Promise<HolderHint> {
    if (!(await this.#reaches(timeoutMs))) return { state: "unknown" };
    const tenure = this.#ground.find(resource);
    return tenure === undefined ? { state: "free", confirmed: true } : describeTenure(tenure);
  }

  async list(prefix: string, timeoutMs: number): Promise<ResourceHint[]> {
    if (!(await this.#reaches(timeoutMs))) throw cutOff(this.holder);
    return this.#ground.list(prefix);
  }

  async close(): Promise<void> {
    this.inspection.close();
    this.#ground.leave(this);
  }

  /** From the ground. */
  onFree(resource: string): void {
    this.#process.run(() => {
      if (this.#process.isConnected) this.#events?.hint(resource);
    });
  }

  /** From the ground. */
  onLost(tenure: MemoryTenure, error: LeaseLostError): void {
    this.#process.run(() => this.#events?.lost(tenure, error));
  }

  /** From the ground. */
  onAsked(request: ReleaseRequest): void {
    this.#process.run(() => {
      if (this.#process.isConnected) this.#events?.releaseRequested?.(request);
    });
  }

  /** From the ground. */
  onChanged(): void {
    this.inspection.look();
  }

  #reaches(timeoutMs: number, cancellation?: Cancellation): Promise<boolean> {
    return this.#process.reaches(this.#timers, timeoutMs, cancellation);
  }
}

function own(grant: Grant): MemoryTenure {
  if (grant instanceof MemoryTenure) return grant;
  throw new TypeError("the grant is another provider's");
}

function memoryGuarantees(ttlMaxMs: number): Guarantees {
  return {
    ground: "memory",
    exclusion: "At most one participant of this process holds a resource at any moment.",
    token: "Every tenure has a greater token than all tenures before it in this process.",
    progress: "A free resource is acquired at once.",
    assumptions: ["All participants live in one process."],
    ttlMinMs: ttlMsMin,
    ttlMaxMs,
    maxClockSkewMs: 0,
    takeoverMsMax: ttlMaxMs,
    data: true,
    attach: true,
    fair: "strict",
    handOver: false,
  };
}
