import type { Leases } from "../../packages/leasehold/src/lease/types.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import { MemoryBlockStore } from "../../packages/files/src/memory-store.js";
import { FilesNode, type FilesNodeOptions } from "../../packages/files/src/protocol/files-node.js";
import { NamedFiles } from "../../packages/files/src/tree/named-files.js";
import {
  type Answered,
  type Asks,
  type Kind,
  noBytes,
  type Peers,
} from "../../packages/files/src/protocol/messages.js";
import { type Header, metaText, tagOf } from "../../packages/files/src/protocol/records.js";
import { Standings } from "../../packages/files/src/protocol/standings.js";
import { MemoryCluster } from "../../packages/leasehold/src/testing/memory-cluster.js";

export const names = ["a", "b", "c"];

export const stamp = { size: 4, modifiedMs: 0 };
export const header: Header = {
  ...stamp,
  epoch: 1n,
  sequence: 1,
  exists: true,
  blockSize: 8,
  floor: { epoch: 1n, sequence: 1 },
};

export const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
export const bytes = (content: string) => new TextEncoder().encode(content);

/** An FNV checksum, which needs no module of Node. */
export function sum(content: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of content) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** The disk of a node that has joined a running cluster. */
export async function joinedDisk(
  node: string,
  options: ConstructorParameters<typeof MemoryBlockStore>[0] = {},
): Promise<MemoryBlockStore> {
  const store = new MemoryBlockStore(options);
  const standings = new Standings(store, node, names, () => node);
  await standings.load();
  await standings.join(Object.fromEntries(names.map((name) => [name, name])), 0, []);
  return store;
}

/** The same with a file `f` of one block. */
export async function diskOf(
  node: string,
  base: bigint,
  epoch: bigint,
  content: string,
): Promise<MemoryBlockStore> {
  const store = await joinedDisk(node);
  await store.writeMeta("f", metaText({ promised: base, base, header }));
  await store.writeBlock("f", 0, tagOf({ ...stamp, epoch, sequence: 9 }), bytes(content));
  await store.sync("f");
  return store;
}

/** Three nodes with leases and disks in memory, in virtual time. */
export class FilesCluster {
  readonly cluster = new MemoryCluster();
  /** Nodes that can reach each other. */
  readonly reachable = new Set(names);
  readonly nodes = new Map<string, FilesNode>();
  /** The named files of each node, if the cluster has names. */
  readonly named = new Map<string, NamedFiles>();
  /** Awaited before a request to another node arrives. */
  before: (to: string, kind: Kind, ask: Asks[Kind], from: string) => Promise<void> | void = () => undefined;
  readonly #stores: Map<string, MemoryBlockStore>;
  readonly #leasesOf: (leases: Leases) => Leases;
  #lives = 0;

  readonly #isNamed: boolean;

  private constructor(
    stores: readonly MemoryBlockStore[],
    leasesOf: (leases: Leases) => Leases,
    isNamed: boolean,
  ) {
    this.#stores = new Map(stores.map((store, at) => [names[at]!, store]));
    this.#leasesOf = leasesOf;
    this.#isNamed = isNamed;
  }

  /** Starts a cluster of empty disks, with names. */
  static async startNamed(): Promise<FilesCluster> {
    const stores = await Promise.all(names.map((name) => joinedDisk(name)));
    const started = new FilesCluster(stores, (leases) => leases, true);
    for (const name of names) await started.start(name);
    return started;
  }

  /** @param leasesOf replaces the leases of a node */
  static async start(
    stores: readonly MemoryBlockStore[],
    leasesOf = (leases: Leases) => leases,
  ): Promise<FilesCluster> {
    const started = new FilesCluster(stores, leasesOf, false);
    for (const name of names) await started.start(name);
    return started;
  }

  /** Starts a node on the current state of its disk. An earlier node of this name gets no more requests. */
  async start(name: string): Promise<void> {
    this.#lives += 1;
    const life = this.#lives;
    let ids = 0;
    const options: FilesNodeOptions = {
      node: name,
      nodes: names,
      joins: !names.includes(name),
      addresses: {},
      world: this.cluster.world,
      leases: this.#leasesOf(this.cluster.open(name)),
      store: this.storeOf(name),
      peers: this.#peersOf(name),
      newId: () => `${name}${life}${(ids += 1) === 1 ? "" : `-${ids}`}`,
      checksum: sum,
      settings: {
        blockSize: 8,
        ttlMs: 1_000,
        leaseMarginMs: 5,
        operationTimeoutMs: 500,
        answerTimeoutMs: 100,
        idleMs: 60_000,
        scrubPauseMs: 10_000,
        announcedMs: 60_000,
        rebalanceBytesPerS: 1e9,
        graceMs: 5_000,
        sweepPauseMs: 100,
        recordsMin: 2_000,
        keptChanges: 10_000,
      },
    };
    const named = this.#isNamed ? new NamedFiles(options) : undefined;
    if (named !== undefined) this.named.set(name, named);
    const node = named?.objects ?? new FilesNode(options);
    this.nodes.set(name, node);
    await (named ?? node).begin();
  }

  storeOf(name: string): MemoryBlockStore {
    return this.#stores.get(name)!;
  }

  /** Starts a node with an empty disk that is or will be in the list of nodes. */
  async join(name: string, store = new MemoryBlockStore()): Promise<void> {
    this.#stores.set(name, store);
    this.reachable.add(name);
    await this.start(name);
  }

  /** Lets virtual time pass, and resolves with the result of `work`. */
  async during<T>(work: Promise<T>): Promise<T> {
    const settled = work.catch(() => undefined);
    await this.cluster.advance("2s");
    await settled;
    return work;
  }

  /** Lets another participant use up the epochs of `f` up to this one. */
  async spendEpochs(last: bigint): Promise<void> {
    for (let token = 0n; token < last;) {
      await using lease = await this.cluster.open("other").acquire("files/f");
      token = lease.token;
    }
  }

  #peersOf(from: string): Peers {
    return {
      ask: async (to, kind, ask, { body = noBytes }) => {
        await this.before(to, kind, ask, from);
        if (!this.reachable.has(to) || !this.reachable.has(from)) throw new LeaseholdError("UNREACHABLE");
        return (await this.nodes.get(to)!.answer(kind, ask, body)) satisfies Answered<typeof kind>;
      },
    };
  }
}
