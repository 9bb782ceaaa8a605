import type {
  CallLimits,
  CoreClient,
  Entry,
  WatchListener,
} from "../../packages/leasehold/src/etcd/core-client.js";
import { parseCoreUrls } from "../../packages/leasehold/src/etcd/address.js";
import { CoreProvider } from "../../packages/leasehold/src/etcd/provider.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import type { Timer, World } from "../../packages/leasehold/src/common/ports.js";
import type { ConformanceGround } from "../../packages/leasehold/src/testing/conformance.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { groundOfProcesses } from "./virtual-ground.js";

export type Operation =
  | "read"
  | "list"
  | "create"
  | "replace"
  | "grantLease"
  | "revokeLease"
  | "refreshLease"
  | "leaseLife";

/** `repeated`: the operation is carried out twice, and the second answer arrives. */
export type Fate = "answered" | "repeated" | "request lost" | "answer lost";

interface MemoryLease {
  readonly seconds: number;
  timer: Timer;
}

interface Watcher {
  readonly key: string;
  readonly isPrefix: boolean;
  readonly listener: WatchListener;
}

/**
 * A consistent core in memory: the operations that leases need, as the core's servers would carry them out.
 */
export class MemoryCore {
  readonly world: World;
  readonly keys = new Map<string, Entry>();
  readonly leases = new Map<bigint, MemoryLease>();
  readonly watchers = new Set<Watcher>();
  readonly counts: Record<Operation, number> = {
    read: 0,
    list: 0,
    create: 0,
    replace: 0,
    grantLease: 0,
    revokeLease: 0,
    refreshLease: 0,
    leaseLife: 0,
  };
  /** Round trip time, ms. */
  latencyMs = 2;
  term = 1n;
  /** The term in answers to refreshes: a deposed leader knows only an earlier one. */
  refreshTerm: bigint | undefined;
  fate: (operation: Operation) => Fate = () => "answered";
  /** Called when an operation has been carried out. */
  done: (operation: Operation) => void = () => undefined;
  /** True while watches report nothing. */
  isMute = false;
  #revision = 1n;

  constructor(world: World) {
    this.world = world;
  }

  get moment() {
    return { revision: this.#revision, term: this.term };
  }

  put(key: string, value: string, leaseId: bigint): void {
    const revision = (this.#revision += 1n);
    const createRevision = this.keys.get(key)?.createRevision ?? revision;
    const entry = { key, value, leaseId, createRevision, modRevision: revision };
    this.keys.set(key, entry);
    this.#tell(key, (listener) => listener.written(entry));
  }

  delete(key: string): void {
    if (!this.keys.delete(key)) return;
    const revision = (this.#revision += 1n);
    this.#tell(key, (listener) => listener.deleted(key, revision));
  }

  grant(leaseId: bigint, seconds: number): void {
    if (!this.leases.has(leaseId))
      this.leases.set(leaseId, { seconds, timer: this.#expiry(leaseId, seconds) });
  }

  refresh(leaseId: bigint): number {
    const lease = this.leases.get(leaseId);
    if (lease === undefined) return 0;
    lease.timer.cancel();
    lease.timer = this.#expiry(leaseId, lease.seconds);
    return lease.seconds;
  }

  revoke(leaseId: bigint): void {
    this.leases.get(leaseId)?.timer.cancel();
    this.leases.delete(leaseId);
    for (const entry of this.keys.values()) if (entry.leaseId === leaseId) this.delete(entry.key);
  }

  #expiry(leaseId: bigint, seconds: number): Timer {
    return this.world.timers.after(seconds * 1_000, () => this.revoke(leaseId));
  }

  #tell(key: string, tell: (listener: WatchListener) => void): void {
    if (this.isMute) return;
    for (const watcher of this.watchers) {
      if (watcher.isPrefix ? !key.startsWith(watcher.key) : key !== watcher.key) continue;
      this.world.timers.after(this.latencyMs / 2, () => {
        if (this.watchers.has(watcher)) tell(watcher.listener);
      });
    }
  }
}

/** One participant's client of the core. */
class MemoryCoreClient implements CoreClient {
  readonly #core: MemoryCore;
  readonly #world: World;
  readonly #watchers = new Set<Watcher>();

  constructor(core: MemoryCore, world: World) {
    this.#core = core;
    this.#world = world;
  }

  read(key: string, limits: CallLimits) {
    return this.#call("read", limits, (core) => ({ ...core.moment, entry: core.keys.get(key) }));
  }

  list(prefix: string, limits: CallLimits) {
    return this.#call("list", limits, (core) => {
      const entries = [...core.keys.values()].filter((entry) => entry.key.startsWith(prefix));
      return { ...core.moment, entries };
    });
  }

  create(key: string, value: string, leaseId: bigint, limits: CallLimits) {
    return this.#call("create", limits, (core) => {
      if (!core.leases.has(leaseId)) throw new LeaseholdError("NO_QUORUM", "requested lease not found");
      if (!core.keys.has(key)) core.put(key, value, leaseId);
      return { ...core.moment, entry: core.keys.get(key)! };
    });
  }

  replace(seen: Entry, value: string, limits: CallLimits, leaseId = seen.leaseId) {
    return this.#call("replace", limits, (core) => {
      if (!core.leases.has(leaseId)) throw new LeaseholdError("NO_QUORUM", "requested lease not found");
      if (core.keys.get(seen.key)?.modRevision === seen.modRevision) core.put(seen.key, value, leaseId);
      return { ...core.moment, entry: core.keys.get(seen.key) };
    });
  }

  grantLease(leaseId: bigint, seconds: number, limits: CallLimits) {
    return this.#call("grantLease", limits, (core) => {
      core.grant(leaseId, seconds);
      return { ...core.moment, seconds };
    });
  }

  revokeLease(leaseId: bigint, limits: CallLimits) {
    return this.#call("revokeLease", limits, (core) => core.revoke(leaseId));
  }

  refreshLease(leaseId: bigint, limits: CallLimits) {
    return this.#call("refreshLease", limits, (core) => {
      const seconds = core.refresh(leaseId);
      return { ...core.moment, term: core.refreshTerm ?? core.term, seconds };
    });
  }

  leaseLife(leaseId: bigint, limits: CallLimits) {
    return this.#call("leaseLife", limits, (core) => ({ seconds: core.leases.get(leaseId)?.seconds ?? -1 }));
  }

  watch(place: { key: string; isPrefix: boolean }, fromRevision: bigint, listener: WatchListener) {
    const watcher = { ...place, listener };
    const { watchers, keys } = this.#core;
    watchers.add(watcher);
    this.#watchers.add(watcher);
    // The newest state stands for all changes since `fromRevision`.
    this.#world.timers.after(0, () => {
      if (!watchers.has(watcher) || place.isPrefix) return;
      const entry = keys.get(place.key);
      if (entry === undefined) listener.deleted(place.key, fromRevision);
      else if (entry.modRevision >= fromRevision) listener.written(entry);
    });
    return {
      stop: () => {
        watchers.delete(watcher);
        this.#watchers.delete(watcher);
      },
    };
  }

  close(): void {
    for (const watcher of this.#watchers) this.#core.watchers.delete(watcher);
  }

  async #call<Result>(
    operation: Operation,
    { timeoutMs, cancellation }: CallLimits,
    run: (core: MemoryCore) => Result,
  ): Promise<Result> {
    const core = this.#core;
    const halfMs = core.latencyMs / 2;
    await this.#sleep(halfMs, cancellation);
    core.counts[operation]++;
    const fate = core.fate(operation);
    let result: Result | undefined;
    if (fate !== "request lost") result = run(core);
    if (fate === "repeated") result = run(core);
    if (fate !== "request lost") core.done(operation);
    if (fate === "request lost" || fate === "answer lost") {
      await this.#sleep(timeoutMs, cancellation);
      throw new LeaseholdError("NO_QUORUM", "no answer from the core");
    }
    await this.#sleep(halfMs, cancellation);
    return result!;
  }

  async #sleep(ms: number, cancellation: CallLimits["cancellation"]): Promise<void> {
    const wasCancelled = await new Promise<boolean>((resolve) => {
      const timer = this.#world.timers.after(ms, () => resolve(false));
      if (cancellation === undefined) return;
      cancellation.onCancel = () => {
        timer.cancel();
        resolve(true);
      };
      if (cancellation.cancelled) cancellation.onCancel();
    });
    if (cancellation !== undefined) cancellation.onCancel = undefined;
    if (wasCancelled) throw new LeaseholdError("NO_QUORUM", "ended by its caller");
  }
}

let drawn = 0n;

/** One participant's client of the core, and the source of its lease ids. */
export function memoryCoreClient(core: MemoryCore, world: World) {
  return { core: new MemoryCoreClient(core, world), drawLeaseId: () => (drawn += 1n) };
}

/** Opens a separate participant, with these clocks. */
export function openMemoryCore(core: MemoryCore, name: string, world: World, ttlMax = "4s"): CoreProvider {
  return new CoreProvider({
    ...memoryCoreClient(core, world),
    world,
    address: parseCoreUrls([`core://memory?ttlMax=${ttlMax}`]),
    holder: `${name}.${(drawn += 1n)}`,
    label: "",
  });
}

/** A core in memory on virtual time. */
export function virtualCoreGround(afflict: (core: MemoryCore) => void = () => undefined): ConformanceGround {
  const world = new VirtualWorld();
  const core = new MemoryCore(world);
  afflict(core);
  return groundOfProcesses(world, (name, own) => openMemoryCore(core, name, own));
}
