import type {
  MemoryMedium,
  MemoryMediumOptions,
} from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { MemoryStore } from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { decodeFarmCell } from "../../packages/leasehold/src/delta/farm/farm-cell.js";
import { type DeltaOptions, openFarm } from "../../packages/leasehold/src/delta/provider/open.js";
import type { DeltaProvider } from "../../packages/leasehold/src/delta/provider/provider.js";
import { farmRegister } from "../../packages/leasehold/src/delta/store.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import type { AttemptOutcome, Grant } from "../../packages/leasehold/src/lease/provider.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { MemoryFarm } from "./memory-farm.js";
import { waitFor } from "./wait-for.js";

export const delayMs = 50;
export const leaseMsMax = 2_000;
/** The time until a replaced store counts: V + Δ + 7δ, stretched for clocks that are off by a tenth. */
export const recoveryMs = Math.ceil(((2 * leaseMsMax + 7 * delayMs) * 1.1) / 0.9);
/**
 * The time until the stores of a new farm count, if they may have forgotten an earlier farm: there is no old
 * list.
 */
export const firstWaitMs = Math.ceil(((leaseMsMax + 7 * delayMs) * 1.1) / 0.9);

let seed = 0;

/** A farm in memory, and providers that use it. */
export class Stage {
  // Stores of two stages must not draw the same markers.
  readonly world = new VirtualWorld({ seed: (seed += 1) });
  readonly farm: MemoryFarm;

  constructor(size = 3, media: Partial<MemoryMediumOptions> = {}) {
    this.farm = new MemoryFarm(this.world, size, { delayMs, ...media });
  }

  get media(): readonly MemoryMedium[] {
    return this.farm.media;
  }

  open(name: string, options: Partial<DeltaOptions> = {}): Promise<DeltaProvider> {
    return this.wait(this.farm.open(name, this.world, { leaseMsMax, ...options }));
  }

  openOnly(media: readonly MemoryMedium[], options: Partial<DeltaOptions> = {}): Promise<DeltaProvider> {
    const stores = media.map((medium) => new MemoryStore(medium, "other"));
    return this.wait(openFarm(stores, this.world, { holder: "other.1", leaseMsMax, ...options }));
  }

  wait<T>(promise: Promise<T>): Promise<T> {
    return waitFor(this.world, promise);
  }

  attempt(provider: DeltaProvider, ttlMs = 1_000): Promise<AttemptOutcome> {
    const request = { resource: "r", ttlMs, timeoutMs: 500, contended: false, waiting: true };
    return this.wait(provider.attempt(request));
  }

  async take(provider: DeltaProvider, ttlMs?: number): Promise<Grant> {
    const outcome = await this.attempt(provider, ttlMs);
    if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    return outcome.grant;
  }

  cells() {
    return this.media.map((medium) => medium.cells(farmRegister).map(decodeFarmCell)[0]);
  }
}

/** The code and the text of the error with which the promise rejects. */
export const refused = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof LeaseholdError ? `${error.code}: ${error.message}` : error;
};
