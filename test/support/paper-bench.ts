import { majorityOf } from "../../packages/leasehold/src/common/majority.js";
import { Driver } from "../../packages/leasehold/src/delta/driver.js";
import type { BothClocks } from "../../packages/leasehold/src/common/both-clocks.js";
import type { Protocol, Resumption } from "../../packages/leasehold/src/delta/effects.js";
import {
  type FarmView,
  type Floor,
  noFloor,
  type ProtocolEnvironment,
} from "../../packages/leasehold/src/delta/lease-protocol.js";
import type { MemoryMedium } from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { MemoryStore } from "../../packages/leasehold/src/delta/memory/memory-store.js";
import { Nonces, type Seen, Site } from "../../packages/leasehold/src/delta/paper/site.js";
import type { DeltaRecord } from "../../packages/leasehold/src/delta/record/record.js";
import { later } from "../../packages/leasehold/src/delta/record/stamp.js";
import type { StoreAnswer, StoreTraits } from "../../packages/leasehold/src/delta/store.js";
import type { Cancellation } from "../../packages/leasehold/src/lease/provider.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { MemoryFarm } from "./memory-farm.js";

export const delayMs = 50;
export const leaseMs = 2_000;

export interface Player {
  readonly environment: ProtocolEnvironment;
  readonly driver: Driver;
  site(options?: { leaseMs?: number; resource?: string }): Site;
  run<Result>(protocol: Protocol<Result>, cancellation?: Cancellation): Promise<Result>;
}

/**
 * Stores in memory, virtual time, and processes that run the parts of the paper's algorithm on them, without
 * provider, farm cells or gate.
 */
export class PaperBench {
  readonly world: VirtualWorld;
  readonly media: readonly MemoryMedium[];
  readonly farm: FarmView;
  /** Bounds on what an empty cell may have contained before its store came back. */
  floor: Floor = noFloor;

  constructor(kinds: readonly StoreTraits["kind"][], seed = 1) {
    this.world = new VirtualWorld({ seed });
    this.media = new MemoryFarm(this.world, kinds).media;
    const ids = this.media.map(({ id }) => id);
    this.farm = {
      size: kinds.length,
      majority: majorityOf(kinds.length),
      kindOf: (store) => kinds[store]!,
      idOf: (store) => ids[store]!,
      nameOf: (store) => `store ${store}`,
      floorOf: () => this.floor,
      mayTake: () => true,
      remembers: () => true,
    };
  }

  get nowMs(): number {
    return this.world.clock.monotonicMs();
  }

  now(): BothClocks {
    return { monotonicMs: this.nowMs, wallMs: this.world.clock.wallMs() };
  }

  player(writer: string, settings: Partial<ProtocolEnvironment["settings"]> = {}): Player {
    const environment: ProtocolEnvironment = {
      farm: this.farm,
      writer,
      random: this.world.random,
      settings: { leaseMsMax: leaseMs, delayMs, pollMs: 5, clockRateError: 0, ...settings },
    };
    const driver = new Driver(
      this.media.map((medium) => new MemoryStore(medium, writer)),
      this.world,
    );
    const nonces = new Nonces();
    return {
      environment,
      driver,
      site: (options = {}) => new Site({ environment, resource: "r", leaseMs, nonces, ...options }),
      run: (protocol, cancellation) => driver.run(protocol, { cancellation }),
    };
  }

  /** Lets time pass until the promise has settled. */
  async wait<Result>(promise: Promise<Result>, limitMs = 60_000): Promise<Result> {
    const seen = { isSettled: false };
    const settle = () => (seen.isSettled = true);
    promise.then(settle, settle);
    await this.world.settle();
    for (let passedMs = 0; !seen.isSettled && passedMs < limitMs; passedMs++) await this.world.advance(1);
    if (!seen.isSettled) throw new Error(`the promise did not settle within ${limitMs} ms`);
    return promise;
  }
}

/** The input with which an algorithm run by hand is resumed: any answers at any times. */
export function resumption(
  atMs: number,
  answers: readonly StoreAnswer[] = [],
  cancelled = false,
): Resumption {
  return { now: { monotonicMs: atMs, wallMs: atMs }, answers, cancelled };
}

export function recordOf(fields: Partial<DeltaRecord> = {}): DeltaRecord {
  return {
    resource: "r",
    epoch: 1n,
    number: 1n,
    writer: "somebody",
    nonce: 1,
    state: "held",
    leaseMs,
    delayMs,
    ...fields,
  };
}

/** The result of a read whose stores have these records, all at one moment. */
export function seenOf(...stores: (readonly DeltaRecord[])[]): Seen {
  const at = { monotonicMs: 0, wallMs: 0 };
  const value = stores.flat().reduce<DeltaRecord | undefined>(later, undefined);
  return { kind: "read", value, stores, floor: noFloor, begun: at, ended: at, cancelled: false };
}

export const slotted = ["slotted", "slotted", "slotted"] as const;
export const atomic = ["atomic", "atomic", "atomic"] as const;
