import { Readable } from "node:stream";
import type {
  ChangeBatch,
  ChangesOptions,
  ChildrenOptions,
  CopyOptions,
  Entry,
  EntryList,
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
  NodesReport,
  PutOptions,
  Quota,
  RemoveOptions,
  ReplicatedFile,
  TouchOptions,
} from "../../packages/files/src/types.js";
import { Draft } from "../../packages/files/src/names/draft.js";
import { filesBelow, find, NamesState, shownIn } from "../../packages/files/src/names/state.js";
import { folderOfSnapshot } from "../../packages/files/src/names/snapshots.js";
import { leftIn } from "../../packages/files/src/names/usage.js";
import { ChangeLog } from "../../packages/files/src/names/change-log.js";
import { Feed } from "../../packages/files/src/tree/feed.js";
import {
  type Change,
  type Content,
  emptyContent,
  type NamesOperation,
  type NamesResult,
} from "../../packages/files/src/names/types.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";

const nowMs = 1_700_000_000_000;

/** Replicated files without replicas: code above them sees no difference while all nodes are well. */
export class MemoryFiles implements Files {
  readonly #names = new NamesState();
  readonly #bytes = new Map<string, Buffer>([["", Buffer.alloc(0)]]);
  /** Called before each block of an upload. The upload rejects with an error that it throws. */
  onWrite: (path: string, offset: number) => void = () => undefined;
  #versions = 0;
  readonly #log = new ChangeLog(10);
  readonly #feed = new Feed((ask) => this.#answer(ask));
  #changed = (): void => undefined;

  /** The paths of all files, in order. */
  get paths(): string[] {
    return [...filesBelow(this.#names, "", "")].map(({ path }) => path);
  }

  bytesOf(path: string): Buffer | undefined {
    const entry = find(this.#names, path)?.entry;
    return entry?.kind === "file" ? this.#contentOf(entry.content) : undefined;
  }

  #contentOf({ id, parts }: Content): Buffer {
    return parts === undefined
      ? this.#bytes.get(id)!
      : Buffer.concat(parts.map((part) => this.#bytes.get(part.id)!));
  }

  /** Stores a file of one piece. */
  async set(path: string, content: Uint8Array | string): Promise<void> {
    await this.put(path, Readable.from([Buffer.from(content)]));
  }

  changes(folder: string, options: ChangesOptions = {}): AsyncIterable<ChangeBatch> {
    return this.#feed.follow(folder, options);
  }

  /** Answers as the primary of names does. */
  async #answer(ask: NamesOperation): Promise<NamesResult> {
    if (ask.kind === "news") {
      if (ask.after >= this.#log.last) await new Promise<void>((resolve) => (this.#changed = resolve));
      const page = this.#log.after(ask.after, "", ask.limit);
      return { feed: "memory.1", last: this.#log.last, ...(page && { page }) };
    }
    if (ask.kind !== "changes") throw new LeaseholdError("UNSUPPORTED");
    if (ask.after === null)
      return { feed: "memory.1", page: { events: [], last: this.#log.last, isMore: false } };
    const page = this.#log.after(ask.after, ask.folder, ask.limit);
    if (page === undefined || ask.feed !== "memory.1") throw new LeaseholdError("CURSOR_GONE");
    return { feed: "memory.1", page };
  }

  open(): Promise<ReplicatedFile> {
    throw new LeaseholdError("UNSUPPORTED", "files in memory are put");
  }

  async stat(path: string): Promise<FileStat> {
    const found = await this.entry(path);
    if (found?.kind !== "file") throw new LeaseholdError("FILE_NOT_FOUND", path);
    return found;
  }

  async entry(path: string): Promise<FileView | FolderStat | undefined> {
    const name = find(this.#names, path);
    if (name === undefined) return undefined;
    const { entry, id } = name;
    const { modifiedMs, attributes } = entry;
    if (entry.kind === "folder") {
      const [usage, left] = [this.#names.usage.of(id), leftIn(this.#names, id)];
      return { kind: "folder", path, modifiedMs, attributes, usage, left, quota: entry.quota };
    }
    const { content, version } = entry;
    const bytes = this.#contentOf(content);
    const read = async (offset: number, length: number) => bytes.subarray(offset, offset + length);
    return { kind: "file", path, size: content.size, version, modifiedMs, attributes, read };
  }

  async put(path: string, bytes: AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<FileStat> {
    const { ifVersion = null, ifMissing = false, makeFolders = true, modifiedMs } = options;
    const parts: Uint8Array[] = [];
    const wish = {
      kind: "put",
      path,
      makeFolders,
      ifMissing,
      ifVersion,
      ifContent: null,
      modifiedMs,
      sealed: [],
    } as const;
    const { existed } = new Draft(this.#names).make(
      { ...wish, content: emptyContent },
      this.#circumstances(),
    );
    await options.accept?.(existed);
    let length = 0;
    for await (const part of bytes) {
      this.onWrite(path, length);
      parts.push(part);
      length += part.length;
    }
    const whole = Buffer.concat(parts);
    const content: Content = { ...emptyContent, id: `c${(this.#versions += 1)}`, size: whole.length };
    this.#bytes.set(content.id, whole);
    const given = options.attributes;
    this.#make({ ...wish, content, attributes: typeof given === "function" ? given() : given });
    return this.stat(path);
  }

  async makeFolder(path: string, { makeFolders = true, attributes }: FolderOptions = {}): Promise<void> {
    if (folderOfSnapshot(path) !== undefined) this.#make({ kind: "snapshot", path, sealed: [] });
    else this.#make({ kind: "folder", path, makeFolders, attributes });
  }

  async list(prefix: string, { after = "", limit = 3 }: ListFilesOptions = {}): Promise<FileList> {
    const paths = [...filesBelow(this.#names, prefix, after)].map(({ path }) => path);
    const files = await Promise.all(paths.slice(0, limit).map((path) => this.stat(path)));
    return paths.length > limit ? { files, next: files.at(-1)!.path } : { files };
  }

  async children(folder: string, options: ChildrenOptions = {}): Promise<EntryList> {
    const { prefix = "", after = "", limit = 3 } = options;
    const found = find(this.#names, folder);
    if (found?.entry.kind !== "folder") throw new LeaseholdError("FILE_NOT_FOUND", folder);
    const placeOf = ({ name, entry }: { name: string; entry: { kind: string } }) =>
      entry.kind === "folder" ? `${name}/` : name;
    const all = [...shownIn(this.#names, found.id, "")].filter(
      (child) => placeOf(child) > after && placeOf(child).startsWith(prefix),
    );
    const entries = await Promise.all(
      all
        .slice(0, limit)
        .map(async ({ name }) => (await this.entry(folder === "" ? name : `${folder}/${name}`))!),
    );
    const next = all.length > limit ? placeOf(all[limit - 1]!) : undefined;
    return { entries: entries as Entry[], ...(next !== undefined && { next }) };
  }

  async compose(
    path: string,
    id: string,
    folder: string,
    files: readonly (readonly [name: string, version: string])[],
    options: ComposeOptions = {},
  ): Promise<FileStat> {
    const { ifVersion = null, ifMissing = false, makeFolders = true, modifiedMs, attributes } = options;
    const how = { ifMissing, ifVersion, ifContent: null, makeFolders, modifiedMs, attributes, sealed: [] };
    const content = { ...emptyContent, id };
    this.#make({ kind: "put", path, content, compose: { folder, files }, ...how });
    return this.stat(path);
  }

  async remove(path: string, options: RemoveOptions = {}): Promise<void> {
    const { recursive = false, ifVersion = null, pruneIn } = options;
    const [isDeep, foldersOnly] = [recursive !== false, recursive === "folders"];
    this.#make({ kind: "remove", path, isDeep, foldersOnly, pruneIn, ifVersion, sealed: [] });
  }

  async touch(path: string, options: TouchOptions): Promise<void> {
    const { ifVersion = null, modifiedMs, attributes } = options;
    this.#make({ kind: "touch", path, modifiedMs, attributes, ifVersion, sealed: [] });
  }

  async rename(from: string, to: string, options: MoveOptions = {}): Promise<boolean> {
    return this.#move("move", from, to, options);
  }

  async copy(from: string, to: string, options: CopyOptions = {}): Promise<boolean> {
    return this.#move("copy", from, to, options);
  }

  nodes(): Promise<NodesReport> {
    return Promise.resolve({ version: 1, copies: 3, nodes: [] });
  }

  changeNodes(): Promise<NodesReport> {
    throw new LeaseholdError("UNSUPPORTED", "files in memory have no nodes");
  }

  async setQuota(path: string, quota: Quota | null): Promise<void> {
    this.#make({ kind: "quota", path, quota });
  }

  status(): FilesStatus {
    const nothing = { reads: 0, writes: 0, forwarded: 0, resets: 0, scrubbed: 0, damaged: 0, repaired: 0 };
    return {
      node: "a",
      state: "serving",
      peers: [{ node: "b", address: "127.0.0.1:1", reachable: true, behind: 0 }],
      primaries: [],
      primariesTotal: 0,
      majority: true,
      uploads: 0,
      counters: { ...nothing, collected: 0, placed: 0 },
    };
  }

  async close(): Promise<void> {}
  async [Symbol.asyncDispose](): Promise<void> {}

  #move(kind: "move" | "copy", from: string, to: string, options: CopyOptions): boolean {
    const { over = "file", makeFolders = true, deep: isDeep = true, ifVersion = null, attributes } = options;
    return this.#make({ kind, from, to, over, makeFolders, isDeep, ifVersion, attributes, sealed: [] });
  }

  #make(change: Change): boolean {
    const draft = new Draft(this.#names);
    const { existed } = draft.make(change, this.#circumstances());
    this.#names.apply(draft.facts);
    this.#log.add(this.#log.part(draft.events));
    this.#changed();
    return existed;
  }

  #circumstances() {
    const version = () => `v${(this.#versions += 1)}`;
    return { version, nowMs, mayName: () => [], mayPlace: () => undefined, keepers: [] };
  }
}
