import { majorityOf, LeaseholdError } from "leasehold/common";
import { type NodeEntry, type NodeList, noNodes } from "../names/nodes.js";
import type { BlockStore } from "../ports.js";
import type { Asks, Generations, Standing } from "./messages.js";

/** The record of a node's disk. */
interface NodeRecord {
  readonly store: string;
  /**
   * The nodes that keep the names and the files written in place. Empty until an added node has learned them.
   */
  readonly nodes: readonly string[];
  readonly founders: Readonly<Record<string, string>> | null;
  /** The generation of each node's disk, as far as this node knows. */
  readonly generations: Generations;
  /** The last registered disk of each node. */
  readonly stores: Readonly<Record<string, string>>;
  /** The newest list of nodes seen by this node. */
  readonly list: NodeList;
  /** The list has contained this disk. From then on the node keeps contents. */
  readonly isListed: boolean;
}

/**
 * How many other nodes a node with an empty disk must hear from, so that every majority in which the lost
 * disk voted includes one of them.
 */
export const othersNeeded = (nodes: number): number => nodes - majorityOf(nodes) + 1;

/**
 * The right to vote. A node with an empty disk has forgotten its promises and acknowledgements. So it votes
 * only when the cluster is new and all other disks are empty too, or when enough others know that its
 * predecessor's votes no longer count.
 */
export class Standings {
  readonly node: string;
  /** The incarnation of this process. */
  readonly incarnation: string;
  readonly #store: BlockStore;
  readonly #newId: () => string;
  /** The initial nodes of the cluster. Empty for a node that was added later. */
  readonly #founding: readonly string[];
  #record: NodeRecord | undefined;
  /** Serialises the writes of registrations. */
  #writing: Promise<void> = Promise.resolve();

  constructor(store: BlockStore, node: string, nodes: readonly string[], newId: () => string) {
    this.#store = store;
    this.node = node;
    this.#founding = nodes.toSorted();
    this.#newId = newId;
    this.incarnation = newId();
  }

  /** The nodes that keep the names and the files that are written in place. */
  get nodes(): readonly string[] {
    return this.#record?.nodes ?? this.#founding;
  }

  /** All known nodes: those on the list or, before there is a list, the initial nodes. */
  get everybody(): readonly string[] {
    const { nodes } = this.list;
    return nodes.length === 0 ? this.nodes : nodes.map(({ id }) => id);
  }

  get isKeeper(): boolean {
    return this.nodes.includes(this.node);
  }

  get list(): NodeList {
    return this.#record?.list ?? noNodes;
  }

  get isListed(): boolean {
    return this.#record?.isListed ?? false;
  }

  /** The cluster's initial disks. */
  get founders(): Readonly<Record<string, string>> {
    return this.#record?.founders ?? {};
  }

  /** @throws LeaseholdError `CONFIG_MISMATCH` if the disk belongs to another cluster or another node. */
  async load(): Promise<void> {
    const text = await this.#store.readNode();
    if (text === undefined) {
      const nodes = this.#founding;
      const generations = Object.fromEntries(nodes.map((node) => [node, 0]));
      const store = this.#newId();
      const stores = { [this.node]: store };
      const none = { list: noNodes, isListed: false, founders: null };
      await this.#write({ store, nodes, generations, stores, ...none });
      return;
    }
    const { node, ...record } = JSON.parse(text) as NodeRecord & { node: string };
    const isOther = this.#founding.length > 0 && String(record.nodes) !== String(this.#founding);
    if (node !== this.node || isOther)
      throw new LeaseholdError(
        "CONFIG_MISMATCH",
        `the disk belongs to node ${node} of ${record.nodes.join(", ")}, and this is ${this.node} of ${this.#founding.join(", ")}`,
      );
    this.#record = record;
  }

  get joined(): boolean {
    return (this.#record?.founders ?? null) !== null;
  }

  get generations(): Generations {
    return this.#record?.generations ?? {};
  }

  get generation(): number {
    return this.generations[this.node] ?? 0;
  }

  get store(): string {
    return this.#record?.store ?? "";
  }

  /** @throws LeaseholdError `STORE_FORGOTTEN` while the node's disk is empty and has not joined. */
  assertJoined(): void {
    if (!this.joined)
      throw new LeaseholdError(
        "STORE_FORGOTTEN",
        `node ${this.node} has an empty disk and has not joined yet`,
      );
  }

  /** @throws LeaseholdError `STORE_FORGOTTEN` unless the list of nodes has this disk. */
  assertListed(): void {
    this.assertJoined();
    if (!this.isListed || this.#isReplaced)
      throw new LeaseholdError("STORE_FORGOTTEN", `the list of nodes does not have the disk of ${this.node}`);
  }

  /** Another disk has replaced this one, which is outdated. */
  get #isReplaced(): boolean {
    const disk = this.list.nodes.find(({ id }) => id === this.node)?.disk ?? "";
    return disk !== "" && disk !== this.store;
  }

  get entry(): NodeEntry | undefined {
    return this.list.nodes.find(({ id }) => id === this.node);
  }

  /** Remembers a list of nodes, unless a newer one is known. */
  async learn(list: NodeList): Promise<void> {
    if (list.version <= this.list.version) return;
    await this.#change((record) => {
      if (list.version <= record.list.version) return record;
      const disk = list.nodes.find(({ id }) => id === this.node)?.disk;
      return { ...record, list, isListed: record.isListed || disk === record.store };
    });
  }

  /** Lets an added node take over what a node of the cluster knows. */
  follow({ nodes, founders, generations }: Standing): Promise<void> {
    return this.#change((record) => ({
      ...record,
      nodes,
      founders,
      generations: newestGenerations([record.generations, generations]),
    }));
  }

  /** @throws LeaseholdError `UNREACHABLE` before the disk's record has been read. */
  standing(): Standing {
    if (this.#record === undefined) throw new LeaseholdError("UNREACHABLE", `node ${this.node} is starting`);
    const { node, nodes, store, joined, generations } = this;
    return { node, nodes, store, joined, founders: this.#record?.founders ?? null, generations };
  }

  /** Registers another node's new disk. */
  async register({ node, generation, store }: Asks["register"]): Promise<void> {
    this.assertJoined();
    await this.#change((record) => {
      const known = record.generations[node] ?? 0;
      if (generation < known || (generation === known && record.stores[node] !== store))
        throw new LeaseholdError("STORE_FORGOTTEN", `generation ${generation} of ${node} is not its newest`);
      return {
        ...record,
        generations: { ...record.generations, [node]: generation },
        stores: { ...record.stores, [node]: store },
      };
    });
  }

  /**
   * Makes the disk count from now on.
   * @param heard the generations known to other nodes; this node's own is `generation`
   */
  join(
    founders: Readonly<Record<string, string>>,
    generation: number,
    heard: readonly Generations[],
  ): Promise<void> {
    return this.#change((record) => {
      const generations = newestGenerations([record.generations, ...heard, { [this.node]: generation }]);
      const isListed = record.isListed || founders[this.node] === record.store;
      return { ...record, founders, generations, isListed, stores: { ...founders, ...record.stores } };
    });
  }

  #change(change: (record: NodeRecord) => NodeRecord): Promise<void> {
    const changed = this.#writing.then(async () => {
      const record = change(this.#record!);
      if (record !== this.#record) await this.#write(record);
    });
    this.#writing = changed.catch(() => undefined);
    return changed;
  }

  async #write(record: NodeRecord): Promise<void> {
    await this.#store.writeNode(JSON.stringify({ node: this.node, ...record }));
    this.#record = record;
  }
}

/** The greatest known generation of each node. */
export function newestGenerations(all: readonly Generations[]): Generations {
  const newest: Record<string, number> = {};
  for (const generations of all)
    for (const [node, generation] of Object.entries(generations))
      newest[node] = Math.max(newest[node] ?? 0, generation);
  return newest;
}

/**
 * The votes that count together: all except those of a disk that another voter knows to be replaced. So a
 * promise or an acknowledgement that was in flight when the disk was lost helps no majority.
 */
export function validVotes<V extends { readonly node: string; readonly generations: Generations }>(
  votes: readonly V[],
): V[] {
  const newest = newestGenerations(votes.map(({ generations }) => generations));
  return votes.filter(({ node, generations }) => (generations[node] ?? 0) === (newest[node] ?? 0));
}
