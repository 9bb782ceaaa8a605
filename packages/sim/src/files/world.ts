import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { Leases } from "leasehold/inner/lease/types.js";
import type { Answered, AskOptions, Asks, Kind, Peers } from "@leasehold/files/inner/protocol/messages.js";
import { FilesNode, type FilesNodeOptions } from "@leasehold/files/inner/protocol/files-node.js";
import { NamedFiles } from "@leasehold/files/inner/tree/named-files.js";
import { noBytes } from "@leasehold/files/inner/protocol/messages.js";
import { MemoryBlockStore } from "@leasehold/files/inner/memory-store.js";
import type { Timers, World } from "leasehold/inner/common/ports.js";
import type { SimRandom } from "../kit/random.js";
import type { Violation } from "../kit/violation.js";
import { StateHash } from "leasehold/inner/flease/protocol/state-hash.js";
import type { FilesCounters, FilesInvariant, FilesPlan } from "./plan.js";

/** In bytes. Small, so that contents have no blocks, one, or several. */
export const blockSize = 8;

/** The longest delay of a request. By then its file has another primary. */
const lateMsMax = 3_000;

/** One machine: a disk that stays, and the process running there. */
export interface Machine {
  readonly id: string;
  readonly store: MemoryBlockStore;
  /** The machine joined after the cluster began. */
  readonly joins: boolean;
  isUp: boolean;
  isPaused: boolean;
  isFull: boolean;
  /** Counts processes: messages to an earlier process are lost. */
  life: number;
  /** Its side of a partitioned network. */
  side: number;
  files: FilesNode;
  /** Files by path, in runs of names. */
  named: NamedFiles | undefined;
  leases: Leases;
}

/** Leases in memory, on virtual time: `MemoryCluster` of `packages/leasehold/src/testing`. */
export interface LeaseCluster {
  readonly world: World;
  open(name: string): Leases;
  advance(ms: number): Promise<void>;
  /** The process receives no answers. */
  cutOff(name: string): void;
  /** The process is stopped. */
  pause(name: string): void;
  resume(name: string): void;
  reconnect(name: string): void;
}

export type MakeCluster = (options: { readonly ttlMax: number; readonly seed: number }) => LeaseCluster;

export interface FilesWorldOptions {
  readonly only: readonly FilesInvariant[] | undefined;
  readonly story: ((line: string) => void) | undefined;
  /** Whether the nodes have names, and not only files that are written in place. */
  readonly isNamed?: boolean;
}

/** A checksum of FNV. */
function sum(content: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of content) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** Nodes of replicated files in virtual time, on leases in memory. */
export class FilesWorld {
  readonly plan: FilesPlan;
  readonly random: SimRandom;
  readonly counters: FilesCounters;
  readonly hash = new StateHash();
  readonly cluster: LeaseCluster;
  readonly machines: Machine[] = [];
  violation: Violation<FilesInvariant> | undefined;
  readonly #isNamed: boolean;
  readonly #only: readonly FilesInvariant[] | undefined;
  readonly #story: ((line: string) => void) | undefined;
  #ids = 0;

  constructor(
    plan: FilesPlan,
    random: SimRandom,
    counters: FilesCounters,
    makeCluster: MakeCluster,
    { only, story, isNamed = false }: FilesWorldOptions,
  ) {
    this.plan = plan;
    this.random = random;
    this.counters = counters;
    this.#story = story;
    this.#only = only;
    this.#isNamed = isNamed;
    this.cluster = makeCluster({ ttlMax: 5_000, seed: plan.seed });
  }

  get founders(): Machine[] {
    return this.machines.filter(({ joins }) => !joins);
  }

  get nowMs(): number {
    return this.cluster.world.clock.monotonicMs();
  }

  log(line: string): void {
    this.hash.number(this.nowMs).text(line);
    this.#story?.(`${this.nowMs.toFixed(1)} ${line}`);
  }

  report(invariant: FilesInvariant, text: string): void {
    if (this.violation !== undefined || this.#only?.includes(invariant) === false) return;
    this.log(`VIOLATION ${invariant}: ${text}`);
    this.violation = { invariant, text, atMs: this.nowMs, event: this.counters.events };
  }

  /** Requests are lost or duplicated. */
  get #isRough(): boolean {
    return this.nowMs < this.plan.stableFromMs;
  }

  begin(): void {
    const { nodes, spares } = this.plan;
    for (let index = 1; index <= nodes + spares; index += 1) {
      const machine: Pick<Machine, "id" | "joins"> & Partial<Machine> = {
        id: `n${index}`,
        joins: index > nodes,
      };
      const store = new MemoryBlockStore({
        latency: () => this.#pause(machine as Machine, this.random.next() * this.plan.diskMsMax),
        roomBytes: () => (machine.isFull === true ? 0 : Infinity),
      });
      Object.assign(machine, { store, isUp: false, isPaused: false, isFull: false, life: 0, side: 0 });
      this.machines.push(machine as Machine);
    }
    for (const machine of this.founders) this.start(machine);
  }

  start(machine: Machine): void {
    machine.life += 1;
    machine.isUp = true;
    machine.isPaused = false;
    const { plan } = this;
    const name = this.#process(machine);
    const { clock, random } = this.cluster.world;
    const world = { clock, random, timers: this.#timers(machine) };
    machine.leases = this.cluster.open(name);
    const options: FilesNodeOptions = {
      node: machine.id,
      nodes: this.founders.map(({ id }) => id),
      joins: machine.joins,
      addresses: {},
      world,
      leases: machine.leases,
      store: machine.store,
      peers: this.#peersOf(machine, world.timers),
      newId: () => `d${(this.#ids += 1)}`,
      checksum: sum,
      settings: {
        blockSize,
        ttlMs: plan.ttlMs,
        leaseMarginMs: 5,
        operationTimeoutMs: plan.operationMs,
        answerTimeoutMs: Math.min(300, plan.operationMs / 2),
        idleMs: plan.idleMs,
        scrubPauseMs: 200,
        announcedMs: 2_000,
        rebalanceBytesPerS: 1e5,
        graceMs: 500,
        sweepPauseMs: 100,
        recordsMin: plan.recordsMin,
        keptChanges: plan.keptChanges,
      },
    };
    machine.named = this.#isNamed ? new NamedFiles(options) : undefined;
    machine.files = machine.named?.objects ?? new FilesNode(options);
    this.log(`${machine.id} starts`);
    (machine.named ?? machine.files)
      .begin()
      .catch((error: unknown) => this.log(`${machine.id} does not begin: ${String(error)}`));
  }

  /** The machine crashes and loses unsynced data, or its whole disk. */
  crash(machine: Machine, wipes: boolean): void {
    const { repaired } = machine.files.status().counters;
    this.counters.repaired += repaired;
    machine.isUp = false;
    machine.life += 1;
    // The process is dead, and its leases expire.
    this.cluster.pause(this.#process(machine, machine.life - 1));
    this.cluster.cutOff(this.#process(machine, machine.life - 1));
    if (wipes) machine.store.wipe();
    else machine.store.crash(() => this.random.chance(0.5));
    this.log(`${machine.id} crashes${wipes ? ", and its disk is lost" : ""}`);
  }

  pause(machine: Machine): void {
    machine.isPaused = true;
    this.cluster.pause(this.#process(machine));
    this.log(`${machine.id} is stopped`);
  }

  resume(machine: Machine): void {
    if (!machine.isPaused) return;
    machine.isPaused = false;
    this.log(`${machine.id} goes on`);
    this.cluster.resume(this.#process(machine));
  }

  /** Cuts the connection between the process and the ground of its leases. */
  cutOff(machine: Machine, isCutOff: boolean): void {
    if (!machine.isUp) return;
    if (isCutOff) this.cluster.cutOff(this.#process(machine));
    else this.cluster.reconnect(this.#process(machine));
  }

  after(delayMs: number, run: () => void): void {
    this.cluster.world.timers.after(delayMs, () => {
      this.counters.events += 1;
      run();
    });
  }

  /** The process of a machine, for `cluster`. */
  #process({ id }: Machine, life = this.machines.find((machine) => machine.id === id)!.life): string {
    return `${id}-${life}`;
  }

  /** Timers that stop with the process. Those of `cluster` belong to the leases only. */
  #timers(machine: Machine): Timers {
    const { life } = machine;
    const waiting = (run: () => void): void => {
      if (machine.life !== life) return;
      if (machine.isPaused) this.cluster.world.timers.after(5, () => waiting(run));
      else run();
    };
    return {
      after: (delayMs, run) =>
        this.cluster.world.timers.after(delayMs, () => {
          this.counters.events += 1;
          waiting(run);
        }),
    };
  }

  #pause(machine: Machine, ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timers(machine).after(ms, resolve);
    });
  }

  #peersOf(from: Machine, timers: Timers): Peers {
    return {
      ask: <K extends Kind>(to: string, kind: K, ask: Asks[K], options: AskOptions) =>
        new Promise<Answered<K>>((resolve, reject) => {
          const target = this.machines.find(({ id }) => id === to)!;
          const { timeoutMs } = options;
          if (!target.isUp && this.random.chance(0.7)) {
            timers.after(1, () => reject(new LeaseholdError("UNREACHABLE", `${to} is not there`)));
            return;
          }
          timers.after(Math.min(timeoutMs, 60_000), () =>
            reject(new LeaseholdError("TIMEOUT", `${to} has not answered`)),
          );
          const body = (options.body ?? noBytes).slice();
          const copies =
            kind !== "operate" && this.#isRough && this.random.chance(this.plan.duplicateRate) ? 2 : 1;
          for (let copy = 0; copy < copies; copy += 1)
            this.#carry(
              from,
              target,
              copy,
              () =>
                target.files.answer(kind, structuredClone(ask), body).then(
                  (answered) => () => resolve(structuredClone(answered)),
                  (error: unknown) => () => reject(error),
                ),
              timers,
            );
        }),
    };
  }

  /** Delivers a request, and its answer if both get through. A duplicate may arrive much later. */
  #carry(
    from: Machine,
    target: Machine,
    copy: number,
    answer: () => Promise<() => void>,
    timers: Timers,
  ): void {
    const delayMs = () => this.random.next() * this.plan.delayMsMax * (copy === 0 ? 1 : 20);
    const heldUpMs = (): number => {
      if (!this.#isRough || !this.random.chance(this.plan.lateRate)) return 0;
      this.counters.late += 1;
      return this.random.next() * lateMsMax;
    };
    const isLost = () =>
      target.side !== from.side || (this.#isRough && this.random.chance(this.plan.lossRate));
    const heldMs = heldUpMs();
    if (heldMs === 0 && isLost()) return;
    this.cluster.world.timers.after(delayMs() + heldMs, () => {
      this.counters.events += 1;
      if (!target.isUp || (heldMs > 0 && target.side !== from.side)) return;
      const { life } = target;
      this.#timers(target).after(0, () => {
        void answer().then((deliver) => {
          if (target.life !== life || isLost()) return;
          timers.after(delayMs(), deliver);
        });
      });
    });
  }
}
