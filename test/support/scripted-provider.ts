import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import type { Clock } from "../../packages/leasehold/src/common/ports.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Grant,
  Provider,
  ProviderEvents,
} from "../../packages/leasehold/src/lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../../packages/leasehold/src/lease/types.js";

export const TTL_MS = 12_000;

export class ScriptedGrant implements Grant {
  readonly resource: string;
  readonly token: bigint;
  endMs: number;
  readonly #clock: Clock;

  constructor(resource: string, token: bigint, clock: Clock, ttlMs: number) {
    this.resource = resource;
    this.token = token;
    this.#clock = clock;
    this.endMs = clock.monotonicMs() + ttlMs;
  }

  remainingMs(): number {
    const leftMs = Math.max(0, this.endMs - this.#clock.monotonicMs());
    if (leftMs === 0) this.endMs = -Infinity;
    return leftMs;
  }
}

export interface PendingAttempt {
  readonly request: AttemptRequest;
  readonly cancellation: Cancellation | undefined;
  answer(outcome: AttemptOutcome): void;
  grant(): ScriptedGrant;
  held(retryInMs?: number): void;
  fail(code?: "NO_QUORUM" | "CONFIG_MISMATCH"): void;
}

export interface PendingRenewal {
  readonly grant: ScriptedGrant;
  readonly sentMs: number;
  answer(extended: boolean): void;
  fail(error: Error): void;
}

export interface PendingRelease {
  readonly grant: ScriptedGrant;
  answer(): void;
}

/**
 * A provider whose answers a test gives by hand. Releases are answered at once unless `holdReleases` is set.
 */
export class ScriptedProvider implements Provider {
  readonly guarantees: Guarantees = {
    ground: "memory",
    exclusion: "",
    token: "",
    progress: "",
    assumptions: [],
    ttlMinMs: 100,
    ttlMaxMs: TTL_MS,
    maxClockSkewMs: 0,
    takeoverMsMax: TTL_MS,
    data: true,
    attach: false,
    fair: "none",
    handOver: false,
  };
  readonly holder = "me.1";
  readonly attempts: PendingAttempt[] = [];
  readonly renewals: PendingRenewal[] = [];
  readonly releases: PendingRelease[] = [];
  holdReleases = false;
  isClosed = false;
  events: ProviderEvents | undefined;
  readonly #clock: Clock;
  #lastToken = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  attach(events: ProviderEvents): void {
    this.events = events;
  }

  attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    return new Promise((answer) => {
      this.attempts.push({
        request,
        cancellation,
        answer,
        grant: () => {
          const grant = new ScriptedGrant(request.resource, ++this.#lastToken, this.#clock, request.ttlMs);
          answer({ kind: "granted", grant });
          return grant;
        },
        held: (retryInMs = 1_000) => answer({ kind: "held", holder: "other.1", retryInMs }),
        fail: (code = "NO_QUORUM") => answer({ kind: "failed", error: new LeaseholdError(code) }),
      });
    });
  }

  renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const scripted = grant as ScriptedGrant;
    const sentMs = this.#clock.monotonicMs();
    return new Promise((resolve, reject) => {
      this.renewals.push({
        grant: scripted,
        sentMs,
        answer: (extended) => {
          if (extended) scripted.endMs = Math.max(scripted.endMs, sentMs + ttlMs);
          resolve(extended);
        },
        fail: reject,
      });
    });
  }

  release(grant: Grant): Promise<void> {
    const scripted = grant as ScriptedGrant;
    scripted.endMs = -Infinity;
    return new Promise((answer) => {
      this.releases.push({ grant: scripted, answer });
      if (!this.holdReleases) answer();
    });
  }

  async query(): Promise<HolderHint> {
    return { state: "free" };
  }

  async list(): Promise<ResourceHint[]> {
    return [
      { resource: "b", state: "held" },
      { resource: "a", state: "held" },
    ];
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

/** The state of a promise, without waiting for it. */
export interface Watched<T> {
  state: "pending" | "fulfilled" | "rejected";
  value: T | undefined;
  error: unknown;
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { state: "pending", value: undefined, error: undefined };
  void promise.then(
    (value) => Object.assign(watched, { state: "fulfilled", value }),
    (error: unknown) => Object.assign(watched, { state: "rejected", error }),
  );
  return watched;
}
