import { type World, Pauses, LeaseholdError, type Leases } from "leasehold/common";
import type { BlockStore } from "../ports.js";
import type {
  ConditionOptions,
  FileCallOptions,
  FileList,
  Files,
  FilesStatus,
  FileStat,
  ListFilesOptions,
  OpenFileOptions,
  ReplicatedFile,
} from "../types.js";
import { checkPath } from "./failures.js";
import { listFiles } from "./listing.js";
import {
  type Answered,
  type Answerer,
  type AskOptions,
  type Asks,
  bytesPerCallMax,
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

/** The limit of a list, and of primaries in a status. */
const listedMax = 1_000;

export interface FilesNodeOptions {
  readonly node: string;
  /** All nodes, in any order. */
  readonly nodes: readonly string[];
  readonly addresses: Readonly<Record<string, string>>;
  readonly world: World;
  readonly leases: Leases;
  readonly store: BlockStore;
  /** Connections to the other nodes. */
  readonly peers: Peers;
  readonly settings: FilesSettings;
  /** Creates a globally unique id for a disk. */
  readonly newId: () => string;
}

/** One node: its copy of all files, its primaries, and the interface for programs. */
export class FilesNode implements Files, Answerer {
  readonly #options: FilesNodeOptions;
  readonly #parts: NodeParts;
  readonly #standings: Standings;
  readonly #replica: Replica;
  readonly #router: Router;
  readonly #upkeep: Upkeep;
  #isClosed = false;

  constructor(options: FilesNodeOptions) {
    const { node, nodes, world, leases, store, settings } = options;
    this.#options = options;
    this.#standings = new Standings(store, node, nodes, options.newId);
    this.#replica = new Replica(store, this.#standings);
    const peers: Peers = { ask: (to, kind, ask, how) => this.#ask(to, kind, ask, how) };
    this.#parts = {
      node,
      nodes: this.#standings.nodes,
      world,
      leases,
      replica: this.#replica,
      peers,
      settings,
      isJoined: () => this.#standings.joined,
    };
    this.#router = new Router(this.#parts);
    const pauses = new Pauses(world.timers);
    this.#upkeep = new Upkeep(this.#parts, store, this.#standings, this.#router, pauses);
  }

  /** @throws LeaseholdError `CONFIG_MISMATCH`, `STORE_CORRUPT`. */
  async begin(): Promise<void> {
    await this.#standings.load();
    this.#upkeep.begin();
  }

  async answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>> {
    if (this.#isClosed) throw new LeaseholdError("CLOSED");
    const asked = { replica: this.#replica, standings: this.#standings, router: this.#router };
    return answerOf(asked, kind, ask, body);
  }

  async open(path: string, { create = "never", signal }: OpenFileOptions = {}): Promise<ReplicatedFile> {
    checkPath(path);
    const { result } = await this.#router.operate(path, { kind: "open", create }, noBytes, signal);
    return new OpenFile(this.#router, path, result.blockSize);
  }

  /** The file of that path, which need not exist. */
  named(path: string): ReplicatedFile {
    return new OpenFile(this.#router, path, this.#parts.settings.blockSize);
  }

  async stat(path: string, { signal }: FileCallOptions = {}): Promise<FileStat> {
    checkPath(path);
    const { result } = await this.#router.operate(path, { kind: "stat" }, noBytes, signal);
    return result.stat;
  }

  list(prefix: string, { after = "", limit = listedMax, signal }: ListFilesOptions = {}): Promise<FileList> {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= listedMax))
      throw new LeaseholdError("INVALID_RANGE", `limit is 1 to ${listedMax}, and not ${limit}`);
    return listFiles(this.#parts, prefix, after, limit, signal);
  }

  async remove(path: string, { ifVersion, signal }: ConditionOptions = {}): Promise<void> {
    checkPath(path);
    await this.#router.operate(path, { kind: "remove", ifVersion: ifVersion ?? null }, noBytes, signal);
  }

  async rename(from: string, to: string, options: FileCallOptions = {}): Promise<void> {
    checkPath(to);
    if (from === to) {
      await this.stat(from, options);
      return;
    }
    const { version } = await this.#copy(from, to, options);
    await this.remove(from, { ...options, ifVersion: version });
  }

  async copy(from: string, to: string, options: FileCallOptions = {}): Promise<void> {
    checkPath(to);
    if (from !== to) await this.#copy(from, to, options);
  }

  /** Copies one consistent version, which it returns, or fails. */
  async #copy(from: string, to: string, options: FileCallOptions): Promise<FileStat> {
    const source = await this.open(from, options);
    const before = await source.stat(options);
    const target = await this.open(to, { ...options, create: "replace" });
    let isHole = false;
    for (let offset = 0; offset < before.size;) {
      const bytes = await source.read(offset, bytesPerCallMax, options);
      if (bytes.length === 0) break;
      // Holes stay holes in the copy.
      isHole = bytes.every((byte) => byte === 0);
      if (!isHole) await target.write(offset, bytes, options);
      offset += bytes.length;
    }
    if (isHole) await target.truncate(before.size, options);
    const { version } = await source.stat(options);
    if (version !== before.version)
      throw new LeaseholdError("FILE_CHANGED", `${from} was changed while it was copied to ${to}`);
    return before;
  }

  status(): FilesStatus {
    const { node, nodes, addresses } = this.#options;
    const primaries = [...this.#router.primaries];
    const { rebuilding, reachable, counters } = this.#upkeep;
    const joined = this.#standings.joined;
    const state = this.#isClosed ? "closed" : !joined ? "waiting" : rebuilding ? "rebuilding" : "serving";
    return {
      node,
      state,
      ...(rebuilding && { rebuilding: { ...rebuilding } }),
      peers: nodes
        .filter((other) => other !== node)
        .map((other) => ({
          node: other,
          address: addresses[other] ?? "",
          reachable: reachable.get(other) ?? false,
          behind: primaries.filter(({ copies }) => copies.behind.has(other)).length,
        })),
      primaries: primaries.slice(0, listedMax).map(({ path, epoch }) => ({ path, epoch: String(epoch) })),
      counters: { ...this.#router.counters, ...counters },
    };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#router.close();
    await this.#upkeep.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #ask<K extends Kind>(to: string, kind: K, ask: Asks[K], options: AskOptions): Promise<Answered<K>> {
    if (to !== this.#options.node) return this.#options.peers.ask(to, kind, ask, options);
    return this.answer(kind, ask, options.body ?? noBytes);
  }
}
