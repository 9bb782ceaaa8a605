import { type World, majorityOf, Pauses, LeaseholdError, type Leases } from "leasehold/common";
import type { BlockStore } from "../ports.js";
import type {
  ConditionOptions,
  FileCallOptions,
  FilesStatus,
  FileStat,
  OpenFileOptions,
  ReplicatedFile,
} from "../types.js";
import { checkPath } from "./failures.js";
import { statsOf } from "./listing.js";
import {
  type Answered,
  type Answerer,
  type AskOptions,
  type Asks,
  type Kind,
  noBytes,
  type Peers,
} from "./messages.js";
import { OpenFile } from "./open-file.js";
import { answerOf } from "./questions.js";
import { Replica } from "./replica.js";
import { Router } from "./router.js";
import type { FilesSettings, NodeParts } from "./settings.js";
import { Standings } from "./standings.js";
import { Upkeep } from "./upkeep.js";
import { type Checksum, Uploads } from "./uploads.js";

/** The most primaries that a status lists. */
const listedMax = 1_000;

export interface FilesNodeOptions {
  readonly node: string;
  /** The initial nodes of the cluster, in any order. With `joins`: the nodes to ask. */
  readonly nodes: readonly string[];
  /** The node was added to an existing cluster. */
  readonly joins?: boolean;
  readonly addresses: Readonly<Record<string, string>>;
  readonly world: World;
  readonly leases: Leases;
  readonly store: BlockStore;
  /** Connections to the other nodes. */
  readonly peers: Peers;
  readonly settings: FilesSettings;
  /** Creates a globally unique id, for disks and contents. */
  readonly newId: () => string;
  readonly checksum: Checksum;
}

/**
 * One node: its copies, its primaries, and the files that are written in place, by key. Paths are handled in
 * `tree/named-files.ts`.
 */
export class FilesNode implements Answerer {
  readonly #options: FilesNodeOptions;
  readonly parts: NodeParts;
  readonly router: Router;
  readonly uploads: Uploads;
  readonly standings: Standings;
  readonly #replica: Replica;
  readonly #upkeep: Upkeep;
  #isClosed = false;

  constructor(options: FilesNodeOptions) {
    const { node, nodes, joins = false, world, leases, store, settings } = options;
    this.#options = options;
    const standings = new Standings(store, node, joins ? [] : nodes, options.newId);
    this.standings = standings;
    this.#replica = new Replica(store, standings);
    const peers: Peers = { ask: (to, kind, ask, how) => this.#ask(to, kind, ask, how) };
    const reachable = (): ReadonlyMap<string, boolean> => this.#upkeep.reachable;
    this.parts = {
      node,
      get nodes() {
        return standings.nodes;
      },
      get everybody() {
        return standings.everybody;
      },
      get unreachable() {
        return [...reachable()].filter(([, isSo]) => !isSo).map(([other]) => other);
      },
      get founders() {
        const { founders } = standings;
        return Object.entries(founders).map(([id, disk]) => ({
          id,
          disk,
          address: options.addresses[id] ?? "",
        }));
      },
      world,
      leases,
      replica: this.#replica,
      peers,
      settings,
      isJoined: () => standings.joined,
    };
    this.router = new Router(this.parts);
    const pauses = new Pauses(world.timers);
    const placementOf = async (content: string): Promise<readonly string[]> =>
      (await this.router.names({ kind: "placement", content })).nodes ?? [];
    this.uploads = new Uploads(store, standings, this.parts, placementOf, options.checksum);
    this.#upkeep = new Upkeep(this.parts, store, standings, nodes, this.router, this.uploads, pauses);
  }

  /** @throws LeaseholdError `CONFIG_MISMATCH`, `STORE_CORRUPT`. */
  async begin(): Promise<void> {
    await this.standings.load();
    this.#upkeep.begin();
  }

  async answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>> {
    if (this.#isClosed) throw new LeaseholdError("CLOSED");
    const { router, uploads } = this;
    const asked = { replica: this.#replica, standings: this.standings, router, uploads };
    return answerOf(asked, kind, ask, body);
  }

  async open(path: string, { create = "never", signal }: OpenFileOptions = {}): Promise<ReplicatedFile> {
    checkPath(path);
    const { result } = await this.router.operate(path, { kind: "open", create }, noBytes, signal);
    return new OpenFile(this.router, path, result.blockSize);
  }

  /** Returns the file at that path, which need not exist. */
  named(path: string): ReplicatedFile {
    return new OpenFile(this.router, path, this.parts.settings.blockSize);
  }

  async stat(path: string, { signal }: FileCallOptions = {}): Promise<FileStat> {
    checkPath(path);
    const { result } = await this.router.operate(path, { kind: "stat" }, noBytes, signal);
    return result.stat;
  }

  /** The states of these files, as known to a majority. */
  stats(paths: readonly string[], signal?: AbortSignal): Promise<Map<string, FileStat>> {
    return statsOf(this.parts, paths, signal);
  }

  async remove(path: string, { ifVersion, signal }: ConditionOptions = {}): Promise<void> {
    checkPath(path);
    await this.router.operate(path, { kind: "remove", ifVersion: ifVersion ?? null }, noBytes, signal);
  }

  /** Removes this node's copy of a file that can no longer be named. */
  async collect(path: string): Promise<void> {
    await this.router.forget(path);
    await this.#replica.collect(path);
  }

  status(): FilesStatus {
    const { node, addresses } = this.#options;
    const { list, everybody } = this.standings;
    const addressOf = (id: string): string =>
      list.nodes.find((each) => each.id === id)?.address || (addresses[id] ?? "");
    const primaries = this.router.tenures;
    const { rebuilding, reachable, counters } = this.#upkeep;
    const joined = this.standings.joined;
    const voters = this.parts.nodes;
    const present = voters.filter((id) => id === node || reachable.get(id) === true).length;
    const state = this.#isClosed ? "closed" : !joined ? "waiting" : rebuilding ? "rebuilding" : "serving";
    return {
      node,
      state,
      ...(rebuilding && { rebuilding: { ...rebuilding } }),
      peers: everybody
        .filter((other) => other !== node)
        .map((other) => ({
          node: other,
          address: addressOf(other),
          reachable: reachable.get(other) ?? false,
          behind: primaries.filter(({ copies }) => copies.behind.has(other)).length,
        })),
      primaries: primaries.slice(0, listedMax).map(({ path, epoch }) => ({ path, epoch: String(epoch) })),
      primariesTotal: primaries.length,
      majority: present >= majorityOf(voters.length),
      uploads: 0,
      counters: { ...this.router.counters, ...counters, collected: 0, placed: 0 },
    };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.router.close();
    this.uploads.close();
    await this.#upkeep.close();
  }

  async #ask<K extends Kind>(to: string, kind: K, ask: Asks[K], options: AskOptions): Promise<Answered<K>> {
    if (to !== this.#options.node) return this.#options.peers.ask(to, kind, ask, options);
    return this.answer(kind, ask, options.body ?? noBytes);
  }
}
