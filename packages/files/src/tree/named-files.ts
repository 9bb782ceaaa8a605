import { LeaseholdError, Pauses } from "leasehold/common";
import { fixedReader } from "../contents/reader.js";
import { Sweeper } from "../contents/sweeper.js";
import { ContentWriter } from "../contents/writer.js";
import { copiesAttribute, copiesIn } from "../names/attributes.js";
import { noNodes } from "../names/nodes.js";
import {
  emptyContent,
  type Entry as NamedEntry,
  type FileEntry,
  type FolderEntry,
  type Found,
  type PutChange,
} from "../names/types.js";
import { folderOfSnapshot } from "../names/snapshots.js";
import { noUsage } from "../names/usage.js";
import {
  checkPath,
  checkQuota,
  checkRange,
  checkTime,
  isLeaseholdError,
  notFound,
} from "../protocol/failures.js";
import { FilesNode, type FilesNodeOptions } from "../protocol/files-node.js";
import { type Answered, type Answerer, type Asks, type Kind, noBytes } from "../protocol/messages.js";
import { livePrefix } from "../protocol/keys.js";
import type {
  ChangeBatch,
  ChangesOptions,
  ChildrenOptions,
  CopyOptions,
  Entry,
  EntryList,
  FileCallOptions,
  FileList,
  Files,
  FilesStatus,
  FileStat,
  FileView,
  ComposeOptions,
  FolderOptions,
  FolderStat,
  ListFilesOptions,
  MoveOptions,
  NodesChange,
  NodesOptions,
  NodesReport,
  OpenFileOptions,
  PutOptions,
  Quota,
  RemoveOptions,
  ReplicatedFile,
  TouchOptions,
  Usage,
} from "../types.js";
import { FileUncertainError } from "../uncertain.js";
import { NamedFile } from "./named-file.js";
import { Feed } from "./feed.js";
import { Listing } from "./listing.js";
import { fileIn, liveVersion, NamesClient, type Wish } from "./names-client.js";

/** The most entries in a list. */
const listedMax = 1_000;
/** How often a name is looked up again because its live content was gone by the time it was asked. */
const looksMax = 10;

/** Replicated files by path: names, immutable contents, and contents that are written in place. */
export class NamedFiles implements Files, Answerer {
  /** The replicas and their primaries, without names. */
  readonly objects: FilesNode;
  readonly #options: FilesNodeOptions;
  readonly #names: NamesClient;
  readonly #sweeper: Sweeper;
  readonly #listing: Listing;
  #uploads = 0;
  readonly #feed: Feed;

  constructor(options: FilesNodeOptions) {
    this.#options = options;
    const objects = new FilesNode(options);
    this.objects = objects;
    this.#names = new NamesClient(objects.router);
    this.#feed = new Feed((operation, signal) => this.#names.ask(operation, signal));
    this.#sweeper = new Sweeper(
      {
        parts: objects.parts,
        store: options.store,
        uploads: objects.uploads,
        ask: (operation) => this.#names.ask(operation),
        collectLive: (key) => objects.collect(key),
      },
      new Pauses(options.world.timers),
    );
    this.#listing = new Listing(objects, this.#names, options.addresses[options.node] ?? "");
  }

  /** @throws LeaseholdError `CONFIG_MISMATCH`, `STORE_CORRUPT`. */
  async begin(): Promise<void> {
    await this.objects.begin();
    this.#sweeper.begin();
    this.#listing.begin();
  }

  answer<K extends Kind>(kind: K, ask: Asks[K], body: Uint8Array): Promise<Answered<K>> {
    return this.objects.answer(kind, ask, body);
  }

  async open(path: string, { create = "never", signal }: OpenFileOptions = {}): Promise<ReplicatedFile> {
    checkPath(path);
    const file = this.#fileAt(path);
    if (create === "never") {
      await file.stat({ signal });
      return file;
    }
    const entry = await this.#names.lookup(path, signal);
    if (create === "missing" && entry?.kind === "file") return file;
    const wish: Wish<PutChange> = {
      kind: "put",
      path,
      content: emptyContent,
      makeFolders: true,
      ifMissing: create !== "replace",
      ifVersion: null,
      ifContent: null,
    };
    await this.#names.change(wish, signal).catch((error: unknown) => {
      // Another call has created the file meanwhile.
      if (create !== "missing" || !isLeaseholdError(error, "FILE_EXISTS")) throw error;
    });
    return file;
  }

  /** Returns the file at that path, which need not exist. */
  named(path: string): ReplicatedFile {
    return this.#fileAt(path);
  }

  async stat(path: string, { signal }: FileCallOptions = {}): Promise<FileStat> {
    checkPath(path);
    const entry = await this.entry(path, { signal });
    if (entry?.kind !== "file") throw noFile(path, entry !== undefined);
    const { size, version, modifiedMs, attributes } = entry;
    return { path, size, version, modifiedMs, ...(attributes && { attributes }) };
  }

  async entry(path: string, { signal }: FileCallOptions = {}): Promise<FileView | FolderStat | undefined> {
    if (path !== "") checkPath(path);
    for (let looks = 1; ; looks += 1) {
      const { entry, nodes, usage, left } = await this.#names.look(path, signal);
      if (entry === undefined) return undefined;
      if (entry.kind === "folder") return { ...folderStat(path, entry, usage), left };
      try {
        return await this.#viewOf(path, entry, nodes, signal);
      } catch (error) {
        if (looks === looksMax || !isLeaseholdError(error, "FILE_NOT_FOUND")) throw error;
      }
    }
  }

  async put(path: string, bytes: AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<FileStat> {
    checkPath(path);
    const { ifVersion = null, ifMissing = false, makeFolders = true, modifiedMs, signal } = options;
    checkTime(modifiedMs);
    const { parts } = this.objects;
    const writer = new ContentWriter(parts, this.#options.checksum, this.#newContentId(), signal);
    const conditions = { ifMissing, ifVersion, ifContent: null };
    const given = options.attributes;
    const early = typeof given === "function" ? undefined : given;
    const wish = { kind: "put", path, makeFolders, modifiedMs, attributes: early, ...conditions } as const;
    const announced = { ...emptyContent, id: writer.id, size: options.size ?? 0 };
    let isOursAlone = true;
    this.#uploads += 1;
    try {
      const change = { ...wish, content: announced, sealed: [] };
      const { entry: before, nodes } = await this.#names.announce(change, parts.unreachable, signal);
      await options.accept?.(before !== undefined);
      writer.place(nodes);
      await writer.write(bytes);
      const { content, holders } = await writer.seal();
      isOursAlone = false;
      // All empty files share one content.
      if (content.id !== writer.id) this.#names.withdraw(writer.id);
      const attributes = typeof given === "function" ? given() : given;
      const put = { ...wish, content, attributes, holders };
      return statOf(path, await this.#name(put, before, writer, signal));
    } catch (error) {
      if (isOursAlone) {
        writer.discard();
        this.#names.withdraw(writer.id);
      }
      throw error;
    } finally {
      this.#uploads -= 1;
      writer.end();
    }
  }

  /**
   * Gives the content its name. If the primary of names was replaced after the announcement, the content is
   * announced again, and a majority confirms again that it has it.
   */
  async #name(
    first: Wish<PutChange>,
    before: NamedEntry | undefined,
    writer: ContentWriter,
    signal: AbortSignal | undefined,
  ): Promise<FileEntry> {
    let wish = first;
    let uncertain: FileUncertainError | undefined;
    for (let tries = 0; ; tries += 1) {
      try {
        if (tries > 0) {
          const again = await this.#announceAgain(first, before, uncertain, signal);
          if ("made" in again) return again.made;
          writer.place(again.nodes);
          wish = { ...again.wish, holders: (await writer.seal()).holders };
        }
        const { entry } = await this.#names.change(wish, signal);
        return fileIn(entry ?? undefined, wish.path);
      } catch (error) {
        if (error instanceof FileUncertainError && error !== uncertain) uncertain = error;
        else if (!isLeaseholdError(error, "STORE_FORGOTTEN")) throw uncertain ?? error;
        if (tries === looksMax || signal?.aborted === true) throw uncertain ?? error;
      }
    }
  }

  /**
   * After an uncertain change, the name shows whether the change was made. If it was not, it may still be
   * made, and others may undo it. So the retry has a condition that fails once the change has been made: the
   * version that the name had before, or the announcement, which ends with the change that names the content.
   */
  async #announceAgain(
    first: Wish<PutChange>,
    before: NamedEntry | undefined,
    uncertain: FileUncertainError | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ made: FileEntry } | { wish: Wish<PutChange>; nodes: readonly string[] }> {
    const { unreachable } = this.objects.parts;
    const announce = async (wish: Wish<PutChange>, isStill: boolean) => {
      const { nodes } = await this.#names.announce({ ...wish, sealed: [] }, unreachable, signal, isStill);
      return { wish, nodes };
    };
    if (uncertain === undefined) return announce(first, false);
    try {
      const { path, content } = first;
      const now = await this.#names.lookup(path, signal);
      if (now?.kind === "file" && content.id !== "" && now.content.id === content.id) return { made: now };
      if (
        now?.kind === "file" &&
        before?.kind === "file" &&
        !now.content.isLive &&
        now.version === before.version
      )
        return await announce({ ...first, ifVersion: now.version }, false);
      // All empty files share one content, so its announcement says nothing about this file.
      if (content.id !== "") return await announce(first, true);
    } catch {
      // The name cannot be looked up, or the condition does not hold.
    }
    throw uncertain;
  }

  async compose(
    path: string,
    id: string,
    folder: string,
    files: readonly (readonly [name: string, version: string])[],
    options: ComposeOptions = {},
  ): Promise<FileStat> {
    checkPath(path);
    checkPath(folder);
    if (!/^[A-Za-z0-9]{1,64}$/.test(id))
      throw new LeaseholdError("INVALID_RANGE", "an id has 1 to 64 letters and digits");
    const { ifVersion = null, ifMissing = false, makeFolders = true, modifiedMs, attributes } = options;
    checkTime(modifiedMs);
    const content = { ...emptyContent, id };
    const how = { ifMissing, ifVersion, ifContent: null, makeFolders, modifiedMs, attributes };
    const wish = { kind: "put", path, content, compose: { folder, files }, ...how } as const;
    const { entry } = await this.#names.change(wish, options.signal);
    return statOf(path, fileIn(entry ?? undefined, path));
  }

  async makeFolder(path: string, options: FolderOptions = {}): Promise<void> {
    checkPath(path);
    const { makeFolders = true, attributes, signal } = options;
    const isSnapshot = folderOfSnapshot(path) !== undefined;
    if (isSnapshot) await this.#names.change({ kind: "snapshot", path }, signal);
    else await this.#names.change({ kind: "folder", path, makeFolders, attributes }, signal);
  }

  async list(prefix: string, options: ListFilesOptions = {}): Promise<FileList> {
    const { after = "", limit = listedMax, signal } = options;
    checkLimit(limit);
    const { found = [], next } = await this.#names.ask({ kind: "files", prefix, after, limit }, signal);
    const files = (await this.#entriesOf(found, signal)).flatMap((entry) => {
      if (entry.kind === "folder") return [];
      const { kind: _, ...stat } = entry;
      return [stat];
    });
    return next === undefined ? { files } : { files, next };
  }

  async children(folder: string, options: ChildrenOptions = {}): Promise<EntryList> {
    const { prefix, after = "", limit = listedMax, signal } = options;
    checkLimit(limit);
    const ask = { kind: "children", path: folder, prefix, after, limit } as const;
    const { entry, found = [], next } = await this.#names.ask(ask, signal);
    if (entry?.kind !== "folder")
      throw new LeaseholdError("FILE_NOT_FOUND", `there is no folder ${JSON.stringify(folder)}`);
    const entries = await this.#entriesOf(found, signal);
    return next === undefined ? { entries } : { entries, next };
  }

  changes(folder: string, options: ChangesOptions = {}): AsyncIterable<ChangeBatch> {
    if (folder !== "") checkPath(folder);
    return this.#feed.follow(folder, options);
  }

  async remove(path: string, options: RemoveOptions = {}): Promise<void> {
    checkPath(path);
    const { ifVersion = null, recursive = false, pruneIn, signal } = options;
    const [isDeep, foldersOnly] = [recursive !== false, recursive === "folders"];
    const wish = { kind: "remove", path, isDeep, foldersOnly, pruneIn, ifVersion } as const;
    await this.#names.change(wish, signal);
  }

  async touch(path: string, options: TouchOptions): Promise<void> {
    checkPath(path);
    const { modifiedMs, attributes, ifVersion = null, signal } = options;
    checkTime(modifiedMs);
    await this.#names.change({ kind: "touch", path, modifiedMs, attributes, ifVersion }, signal);
  }

  async setQuota(path: string, quota: Quota | null, { signal }: FileCallOptions = {}): Promise<void> {
    checkPath(path);
    if (quota !== null) checkQuota(quota);
    await this.#names.change({ kind: "quota", path, quota }, signal);
  }

  rename(from: string, to: string, options: MoveOptions = {}): Promise<boolean> {
    return this.#move("move", from, to, options);
  }

  copy(from: string, to: string, options: CopyOptions = {}): Promise<boolean> {
    return this.#move("copy", from, to, options);
  }

  async #move(kind: "move" | "copy", from: string, to: string, options: CopyOptions): Promise<boolean> {
    checkPath(from);
    checkPath(to);
    const { ifVersion = null, over = "file", makeFolders = true, deep: isDeep = true } = options;
    const { attributes, signal } = options;
    const wish = { kind, from, to, makeFolders, over, isDeep, ifVersion, attributes };
    return (await this.#names.change(wish, signal)).existed === true;
  }

  /** The addresses of another node. Empty: it does not belong to this cluster. */
  addressesOf(node: string): readonly string[] {
    const { list } = this.objects.standings;
    const listed = list.nodes.find(({ id }) => id === node);
    if (list.version > 0 && listed === undefined) return [];
    const known = [listed?.address ?? "", this.#options.addresses[node] ?? ""];
    return [...new Set(known)].filter((address) => address !== "");
  }

  async nodes({ signal }: FileCallOptions = {}): Promise<NodesReport> {
    const { list = noNodes, counts = {} } = await this.#names.ask({ kind: "list" }, signal);
    const { nodes: keepers } = this.objects.parts;
    const nodes = list.nodes.map(({ disk, ...node }) => ({
      ...node,
      state: disk === "" ? ("new" as const) : node.state,
      keepsNames: keepers.includes(node.id),
      contents: counts[node.id] ?? 0,
    }));
    return { version: list.version, copies: list.copies, nodes };
  }

  async changeNodes(change: NodesChange, options: NodesOptions = {}): Promise<NodesReport> {
    const { ifList = null, signal } = options;
    if (change.what === "copies" && change.folder !== undefined) {
      const attributes = { [copiesAttribute]: String(change.copies) };
      if (copiesIn(attributes) === undefined)
        throw new LeaseholdError("INVALID_CONFIG", `${change.copies} is no number of copies`);
      const entry = await this.entry(change.folder, { signal });
      if (entry?.kind !== "folder")
        throw new LeaseholdError("FILE_NOT_FOUND", `there is no folder ${JSON.stringify(change.folder)}`);
      await this.touch(change.folder, { attributes, signal });
      return this.nodes({ signal });
    }
    const wanted = { kind: "nodes", change: { ...change, ifList } } as const;
    await this.#names.ask({ kind: "commit", change: wanted }, signal);
    return this.nodes({ signal });
  }

  status(): FilesStatus {
    const status = { ...this.objects.status(), uploads: this.#uploads };
    const { filling, counters } = this.#sweeper;
    const { collected, placed } = counters;
    const all = { ...status.counters, collected, placed };
    const { joined, isListed } = this.objects.standings;
    if (joined && !isListed) return { ...status, state: "waiting", counters: all };
    if (status.state !== "serving" || filling === undefined) return { ...status, counters: all };
    return { ...status, state: "rebuilding", rebuilding: { ...filling }, counters: all };
  }

  async close(): Promise<void> {
    this.#feed.close();
    await Promise.all([this.#listing.close(), this.#sweeper.close(), this.objects.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #fileAt(path: string): NamedFile {
    return new NamedFile(this.objects, this.#names, path, () => this.#newContentId());
  }

  async #viewOf(
    path: string,
    entry: FileEntry,
    nodes: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<FileView> {
    const { content } = entry;
    if (content.isLive) return this.#liveView(path, entry, signal);
    const fixed = fixedReader(this.objects.uploads, content, nodes);
    const read: FileView["read"] = async (offset, length, options = {}) => {
      try {
        return await fixed(offset, length);
      } catch (error) {
        if (!isLeaseholdError(error, "FILE_DAMAGED")) throw error;
        const now = await this.#names.lookup(path, options.signal);
        if (now?.kind === "file" && now.content.id === content.id) throw error;
        throw new LeaseholdError("FILE_CHANGED", `${path} was replaced, and its former content is gone`);
      }
    };
    const pieceBytes = content.parts === undefined ? content.blockSize : undefined;
    return { kind: "file", ...statOf(path, entry), read, pieceBytes };
  }

  async #liveView(
    path: string,
    { content: { id }, attributes }: FileEntry,
    signal: AbortSignal | undefined,
  ): Promise<FileView> {
    const { router } = this.objects;
    const key = livePrefix + id;
    const statNow = async (options: FileCallOptions): Promise<FileStat> => {
      const operation = { kind: "stat", sealed: true } as const;
      const { result } = await router.operate(key, operation, noBytes, options.signal);
      const version = liveVersion(result.stat.version, id);
      return { ...result.stat, path, version, ...(attributes && { attributes }) };
    };
    const stat = await statNow({ signal });
    const read: FileView["read"] = async (offset, length, options = {}) => {
      checkRange(offset, length);
      const operation = { kind: "read", offset, length, sealed: true } as const;
      const { result, bytes } = await router.operate(key, operation, noBytes, options.signal);
      if (liveVersion(result.stat.version, id) === stat.version) return bytes;
      throw new LeaseholdError("FILE_CHANGED", `${path} has changed while it was read`);
    };
    return { kind: "file", ...stat, read };
  }

  async #entriesOf(found: readonly Found[], signal: AbortSignal | undefined): Promise<Entry[]> {
    const live = found.flatMap(({ entry }) =>
      entry.kind === "file" && entry.content.isLive ? [livePrefix + entry.content.id] : [],
    );
    const stats = await this.objects.stats(live, signal);
    return found.flatMap(({ path, entry, usage }): Entry[] => {
      if (entry.kind === "folder") return [folderStat(path, entry, usage)];
      const { attributes } = entry;
      const { id, isLive } = entry.content;
      if (!isLive) return [{ kind: "file", ...statOf(path, entry) }];
      const stat = stats.get(livePrefix + id);
      if (stat === undefined) return [];
      const version = liveVersion(stat.version, id);
      return [{ ...stat, kind: "file", path, version, ...(attributes && { attributes }) }];
    });
  }

  #newContentId(): string {
    return this.#options.newId().replaceAll("-", "");
  }
}

function statOf(path: string, { content, version, modifiedMs, attributes }: FileEntry): FileStat {
  return { path, size: content.size, version, modifiedMs, ...(attributes && { attributes }) };
}

function folderStat(path: string, entry: FolderEntry, usage: Usage = noUsage): FolderStat {
  const { modifiedMs, attributes, quota } = entry;
  return {
    kind: "folder",
    path,
    modifiedMs,
    usage,
    ...(quota && { quota }),
    ...(attributes && { attributes }),
  };
}

function noFile(path: string, isFolder: boolean): LeaseholdError {
  return isFolder ? new LeaseholdError("FILE_EXISTS", `${JSON.stringify(path)} is a folder`) : notFound(path);
}

function checkLimit(limit: number): void {
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= listedMax))
    throw new LeaseholdError("INVALID_RANGE", `limit is 1 to ${listedMax}, and not ${limit}`);
}
