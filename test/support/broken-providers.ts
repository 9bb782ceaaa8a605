import type { World } from "../../packages/leasehold/src/common/ports.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  Cancellation,
  Grant,
} from "../../packages/leasehold/src/lease/provider.js";
import type { HolderHint, ResourceHint } from "../../packages/leasehold/src/lease/types.js";
import { MemoryGround, type MemoryTenure } from "../../packages/leasehold/src/testing/memory-ground.js";
import { MemoryProvider } from "../../packages/leasehold/src/testing/memory-provider.js";
import type { Parts } from "./virtual-ground.js";

// Providers with one mistake each, which the conformance suite must find.

export class Base extends MemoryProvider {
  readonly ground: MemoryGround;
  readonly world: World;

  constructor({ ground, world, name, process }: Parts) {
    super(ground, world, { name, ttlMaxMs: 15_000, process });
    this.ground = ground;
    this.world = world;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.timers.after(ms, resolve));
  }
}

/** Returns altered grants, and hands the original grants back to the memory provider. */
abstract class Disguised extends Base {
  readonly #originals = new Map<Grant, Grant>();

  abstract disguise(grant: Grant, request: AttemptRequest): Grant;

  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const outcome = await super.attempt(request, cancellation);
    if (outcome.kind !== "granted") return outcome;
    const grant = this.disguise(outcome.grant, request);
    this.#originals.set(grant, outcome.grant);
    return { kind: "granted", grant };
  }

  override renew(grant: Grant, ttlMs: number): Promise<boolean> {
    return super.renew(this.#originals.get(grant)!, ttlMs);
  }

  override release(grant: Grant): Promise<void> {
    return super.release(this.#originals.get(grant)!);
  }
}

export class GrantsTwice extends Base {
  constructor(parts: Parts) {
    super({ ...parts, ground: new MemoryGround() });
  }
}

export class TokensGoBack extends Disguised {
  disguise(grant: Grant): Grant {
    return { resource: grant.resource, token: 1_000n - grant.token, remainingMs: () => grant.remainingMs() };
  }
}

export class TokensStay extends Disguised {
  disguise(grant: Grant): Grant {
    return { resource: grant.resource, token: 7n, remainingMs: () => grant.remainingMs() };
  }
}

export class NeverExpires extends Disguised {
  disguise(grant: Grant, { ttlMs }: AttemptRequest): Grant {
    const endMs = this.clock.monotonicMs() + ttlMs;
    (grant as MemoryTenure).extendTo(Infinity, Infinity);
    const remainingMs = () => Math.max(0, endMs - this.clock.monotonicMs());
    return { resource: grant.resource, token: grant.token, remainingMs };
  }
}

export class RemainingLies extends Disguised {
  disguise(grant: Grant, { ttlMs }: AttemptRequest): Grant {
    const endMs = this.clock.monotonicMs() + 1.5 * ttlMs;
    const remainingMs = () => Math.max(0, endMs - this.clock.monotonicMs());
    return { resource: grant.resource, token: grant.token, remainingMs };
  }
}

export class RemainingTrustsATimer extends Disguised {
  disguise(grant: Grant, { ttlMs }: AttemptRequest): Grant {
    let leftMs = ttlMs;
    this.world.timers.after(ttlMs, () => (leftMs = 0));
    return { resource: grant.resource, token: grant.token, remainingMs: () => leftMs };
  }
}

export class IgnoresAbort extends Base {
  override async attempt(request: AttemptRequest): Promise<AttemptOutcome> {
    const endMs = this.clock.monotonicMs() + request.timeoutMs;
    for (;;) {
      const outcome = await super.attempt(request);
      if (outcome.kind !== "held" || this.clock.monotonicMs() >= endMs) return outcome;
      await this.sleep(100);
    }
  }
}

export class LeavesBehindWhatWasAborted extends Base {
  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    await this.sleep(2);
    const outcome = await super.attempt(request);
    return cancellation?.cancelled === true ? super.attempt(request, cancellation) : outcome;
  }
}

export class RenewsNothing extends Base {
  override async renew(): Promise<boolean> {
    return true;
  }
}

export class FailsToRenew extends Base {
  override async renew(): Promise<boolean> {
    return false;
  }
}

export class ReleasesNothing extends Base {
  override async release(grant: Grant): Promise<void> {
    (grant as MemoryTenure).abandoned = true;
  }
}

export class ReleasesByName extends Base {
  override async release(grant: Grant): Promise<void> {
    const standing = this.ground.find(grant.resource);
    if (standing !== undefined) this.ground.free(standing);
  }
}

export class ForgetsWaiters extends Base {
  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const outcome = await super.attempt(request, cancellation);
    return outcome.kind === "held" ? { ...outcome, retryInMs: 3_600_000 } : outcome;
  }

  override onFree(): void {
    // Sends no hints.
  }
}

export class HolderIsNobody extends Base {
  override async query(): Promise<HolderHint> {
    return { state: "free" };
  }
}

export class ListsEverything extends Base {
  override list(_prefix: string, timeoutMs: number): Promise<ResourceHint[]> {
    return super.list("", timeoutMs);
  }
}

/** Keeps the data that the first holder of a name publishes. */
export class KeepsTheFirstData extends Base {
  readonly #data = new Map<string, string>();

  override attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    const { resource, data } = request;
    if (data !== undefined && !this.#data.has(resource)) this.#data.set(resource, data);
    return super.attempt({ ...request, data: this.#data.get(resource) }, cancellation);
  }
}

export class LosesData extends Base {
  override attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    return super.attempt({ ...request, data: undefined }, cancellation);
  }
}

export class GuaranteesNothing extends Base {
  constructor(parts: Parts) {
    super(parts);
    Object.assign(this, { guarantees: { ...this.guarantees, assumptions: [] } });
  }
}
