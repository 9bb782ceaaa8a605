import { getOrInsert, LeaseholdError } from "leasehold/common";
import type { BlockStore, StoredBlock } from "../ports.js";
import type { Answers, Asks, ListedFile, PromiseAnswer, Vote } from "./messages.js";
import { blocksPerPage, pathsPerPage } from "./messages.js";
import {
  compareVersions,
  type FileMeta,
  type Header,
  headerOf,
  headerText,
  metaOf,
  metaText,
  newestStamp,
  nothingKnown,
  type Stamp,
  stampOf,
  tagOf,
} from "./records.js";
import type { Standings } from "./standings.js";
import { uploadPrefix } from "./keys.js";
import { type Scope, Turns, wholeFile } from "./turns.js";

/** The most files whose metadata and tags are cached; the least recently used are evicted. */
const keptFilesMax = 20_000;
/** Cached tags of all files together, about 100 bytes each. */
const keptTagsMax = 1_000_000;

/** The cached state of a file. */
interface Kept {
  readonly turns: Turns;
  meta: FileMeta;
  /** By index. Undefined for a block whose tag cannot be read. */
  readonly tags: Map<number, string | undefined>;
}

/**
 * One node's copy of all files, and its vote. It carries out a primary's request unless it has promised to
 * refuse that epoch, and answers when the change is on disk. The primary may replace a block by any version,
 * unless the block is of the same epoch and newer: if the reset did not find a block of an earlier epoch,
 * that block was never acknowledged.
 */
export class Replica {
  readonly #store: BlockStore;
  readonly #standings: Standings;
  /** In order of use. */
  readonly #kept = new Map<string, Promise<Kept>>();
  readonly #users = new Map<string, number>();
  #keptTags = 0;

  constructor(store: BlockStore, standings: Standings) {
    this.#store = store;
    this.#standings = standings;
  }

  promise({ path, epoch }: Asks["promise"]): Promise<PromiseAnswer> {
    return this.#run(path, wholeFile, async (kept) => {
      const wanted = BigInt(epoch);
      const { meta } = kept;
      refuseOlder(wanted, meta);
      if (wanted > meta.promised) await this.#writeMeta(path, kept, { ...meta, promised: wanted });
      return {
        ...this.#vote(kept.meta),
        header: meta.header === undefined ? null : headerText(meta.header),
        incarnation: this.#standings.incarnation,
      };
    });
  }

  blocks({ path, after, incarnation }: Asks["blocks"]): Promise<Answers["blocks"]> {
    return this.#run(path, { from: 0, to: Infinity, changes: false }, async (kept) => {
      this.#refuseEarlier(incarnation);
      const { tags } = kept;
      const blocks = [...tags]
        .filter(([index]) => index > after)
        .sort(([one], [other]) => one - other)
        .slice(0, blocksPerPage)
        .map(([index, tag]) => [index, tag ?? null] as const);
      return { blocks };
    });
  }

  put({ path, epoch, index, tag, spare, later = false }: Asks["put"], bytes: Uint8Array): Promise<Vote> {
    return this.#run(path, { from: index, to: index, changes: true }, async (kept) => {
      const { meta } = kept;
      refuseUnpromised(BigInt(epoch), meta);
      const { tags } = kept;
      if (this.#mayReplace(kept, index, stampOf(tag), BigInt(epoch))) {
        if (spare && !(await this.#store.hasRoom(bytes.length))) throw new LeaseholdError("STORE_FULL");
        await this.#changeBlock(path, kept, index, () => this.#store.writeBlock(path, index, tag, bytes));
        this.#setTag(tags, index, tag);
      }
      if (!later) await this.#store.sync(path);
      return this.#vote(kept.meta);
    });
  }

  header({ path, epoch, header: text }: Asks["header"]): Promise<Vote> {
    return this.#run(path, wholeFile, async (kept) => {
      const { meta } = kept;
      refuseUnpromised(BigInt(epoch), meta);
      if (text === null) {
        const isEarlier = meta.header !== undefined && meta.header.epoch < BigInt(epoch);
        if (isEarlier) await this.#writeMeta(path, kept, { ...meta, header: undefined });
        return this.#vote(kept.meta);
      }
      const header = headerOf(text);
      const isOlder = meta.header !== undefined && compareVersions(header, meta.header) <= 0;
      if (isOlder && meta.header.epoch === BigInt(epoch)) return this.#vote(meta);
      await this.#store.sync(path);
      await this.#writeMeta(path, kept, { ...meta, header });
      await this.#removeVoid(path, kept, header);
      return this.#vote(kept.meta);
    });
  }

  drop({ path, epoch, index }: Asks["drop"]): Promise<Vote> {
    return this.#run(path, { from: index, to: index, changes: true }, async (kept) => {
      const { meta } = kept;
      refuseUnpromised(BigInt(epoch), meta);
      const { tags } = kept;
      const tag = tags.get(index);
      if (tags.has(index) && (tag === undefined || stampOf(tag).epoch < BigInt(epoch))) {
        await this.#changeBlock(path, kept, index, () => this.#store.removeBlock(path, index));
        this.#forgetTag(tags, index);
      }
      await this.#store.sync(path);
      return this.#vote(kept.meta);
    });
  }

  mark({ path, epoch, incarnation }: Asks["mark"]): Promise<Vote> {
    return this.#run(path, wholeFile, async (kept) => {
      const { meta } = kept;
      refuseUnpromised(BigInt(epoch), meta);
      this.#refuseEarlier(incarnation);
      await this.#store.sync(path);
      if (meta.base !== BigInt(epoch)) await this.#writeMeta(path, kept, { ...meta, base: BigInt(epoch) });
      return this.#vote(kept.meta);
    });
  }

  fetch({ path, index, tag }: Asks["fetch"]): Promise<Uint8Array> {
    return this.#run(path, { from: index, to: index, changes: false }, async () => {
      const block = await this.#store.readBlock(path, index);
      if (block?.tag !== tag)
        throw new LeaseholdError(
          "FILE_DAMAGED",
          `this node does not have block ${index} of ${path} in that version`,
        );
      return block.bytes;
    });
  }

  hasRoom(bytes: number): Promise<boolean> {
    return this.#store.hasRoom(bytes);
  }

  /** Reads a block of this node's copy, for the primary at this node. */
  read(path: string, index: number): Promise<StoredBlock | undefined> {
    return this.#store.readBlock(path, index);
  }

  /** Restores a damaged block, unless it has been replaced meanwhile. */
  repair(path: string, index: number, tag: string, bytes: Uint8Array): Promise<void> {
    return this.#run(path, { from: index, to: index, changes: true }, async (kept) => {
      const { tags } = kept;
      if (tags.get(index) !== tag) return;
      await this.#store.writeBlock(path, index, tag, bytes);
      await this.#store.sync(path);
    });
  }

  /** The tags of the file's blocks here, as a live view. */
  tags(path: string): Promise<ReadonlyMap<number, string | undefined>> {
    return this.#run(path, { from: 0, to: Infinity, changes: false }, ({ tags }) => Promise.resolve(tags));
  }

  meta(path: string): Promise<FileMeta> {
    return this.#run(path, { from: 0, to: Infinity, changes: false }, ({ meta }) => Promise.resolve(meta));
  }

  /** Treats the copy of this file as lost, except for a promise that a majority knows. */
  forget(path: string, epoch: bigint): Promise<void> {
    return this.#use(path, async (kept) => {
      const promised = kept.meta.promised > epoch ? kept.meta.promised : epoch;
      await this.#writeMeta(path, kept, { promised, base: undefined, header: undefined });
    });
  }

  async list({ paths }: Asks["list"]): Promise<ListedFile[]> {
    const files: ListedFile[] = [];
    for (const path of paths) files.push(await this.#listed(path));
    return files;
  }

  /**
   * Removes a file that can no longer be named. Its promises may be forgotten because nobody acts on them.
   */
  collect(path: string): Promise<void> {
    return this.#run(path, wholeFile, async (kept) => {
      await this.#store.removeFile(path);
      this.#keptTags -= kept.tags.size;
      kept.tags.clear();
      kept.meta = nothingKnown;
    });
  }

  async promises(after: string): Promise<Answers["promises"]> {
    const paths = await this.#store.listFiles("", after, pathsPerPage);
    const promises: (readonly [string, string])[] = [];
    for (const path of paths)
      if (!path.startsWith(uploadPrefix)) promises.push([path, String((await this.meta(path)).promised)]);
    return { promises };
  }

  #listed(path: string): Promise<ListedFile> {
    return this.#run(path, { from: 0, to: Infinity, changes: false }, (kept) => {
      const { base, header } = kept.meta;
      return Promise.resolve({
        path,
        base: base === undefined ? null : String(base),
        header: header === undefined ? null : headerText(header),
        newest: header === undefined ? null : tagOf(newestStamp(header, kept.tags.values())),
      });
    });
  }

  #vote({ base }: FileMeta): Vote {
    const { node, generations } = this.#standings;
    return { node, generations, base: base === undefined ? null : String(base) };
  }

  /** The previous process had unsynced changes, or another disk. */
  #refuseEarlier(incarnation: string): void {
    if (incarnation !== this.#standings.incarnation)
      throw new LeaseholdError("STORE_FORGOTTEN", "this node was restarted meanwhile");
  }

  /** The newest block of this epoch stays. Older blocks are replaced by the primary's. */
  #mayReplace({ meta: { header }, tags }: Kept, index: number, stamp: Stamp, epoch: bigint): boolean {
    // The block is late: the primary has since emptied the file.
    if (header?.epoch === epoch && compareVersions(stamp, header.floor) < 0) return false;
    const tag = tags.get(index);
    if (tag === undefined) return true;
    const there = stampOf(tag);
    return there.epoch < epoch || compareVersions(there, stamp) < 0;
  }

  /** Removes the blocks written before the file was emptied or removed. */
  async #removeVoid(path: string, kept: Kept, header: Header): Promise<void> {
    const { tags } = kept;
    for (const [index, tag] of tags) {
      if (tag === undefined || compareVersions(stampOf(tag), header.floor) >= 0) continue;
      await this.#store.removeBlock(path, index);
      this.#forgetTag(tags, index);
    }
    await this.#store.sync(path);
  }

  async #writeMeta(path: string, kept: Kept, meta: FileMeta): Promise<void> {
    await this.#store.writeMeta(path, metaText(meta));
    kept.meta = meta;
  }

  /** A failed change may have taken effect, so the block is read again. */
  async #changeBlock(path: string, kept: Kept, index: number, change: () => Promise<void>): Promise<void> {
    try {
      await change();
    } catch (error) {
      const there = await this.#store.readBlock(path, index).catch(() => null);
      if (there === null) kept.meta = { ...kept.meta, base: undefined };
      else if (there === undefined) this.#forgetTag(kept.tags, index);
      else this.#setTag(kept.tags, index, there.tag);
      throw error;
    }
  }

  /**
   * Reads the state of a file from disk. If a block's tag can't be read, the replica can't tell what it has
   * acknowledged: it knows the file again after a primary has completed it.
   */
  async #load(path: string): Promise<Kept> {
    const text = await this.#store.readMeta(path);
    const entries = text === undefined ? [] : await this.#store.listBlocks(path);
    const tags = new Map(entries.map(({ index, tag }) => [index, tag]));
    this.#keptTags += tags.size;
    const kept = { turns: new Turns(), meta: text === undefined ? nothingKnown : metaOf(text), tags };
    if (kept.meta.base !== undefined && [...tags.values()].includes(undefined))
      await this.#writeMeta(path, kept, { ...kept.meta, base: undefined });
    return kept;
  }

  #setTag(tags: Map<number, string | undefined>, index: number, tag: string): void {
    if (!tags.has(index)) this.#keptTags += 1;
    tags.set(index, tag);
  }

  #forgetTag(tags: Map<number, string | undefined>, index: number): void {
    if (tags.delete(index)) this.#keptTags -= 1;
  }

  async #run<T>(path: string, scope: Scope, operation: (kept: Kept) => Promise<T>): Promise<T> {
    this.#standings.assertJoined();
    return this.#use(path, (kept) => kept.turns.run(scope, () => operation(kept)));
  }

  async #use<T>(path: string, use: (kept: Kept) => Promise<T>): Promise<T> {
    const loading = getOrInsert(this.#kept, path, () => this.#load(path));
    this.#kept.delete(path);
    this.#kept.set(path, loading);
    this.#users.set(path, (this.#users.get(path) ?? 0) + 1);
    let kept: Kept | undefined;
    try {
      kept = await loading;
      return await use(kept);
    } finally {
      const users = this.#users.get(path)! - 1;
      if (users > 0) this.#users.set(path, users);
      else this.#users.delete(path);
      if (kept === undefined && this.#kept.get(path) === loading) this.#kept.delete(path);
      await this.#forgetThoseUsedLongAgo();
    }
  }

  async #forgetThoseUsedLongAgo(): Promise<void> {
    for (const [path, loading] of this.#kept) {
      if (this.#kept.size <= keptFilesMax && this.#keptTags <= keptTagsMax) return;
      if (this.#users.has(path)) continue;
      this.#kept.delete(path);
      this.#keptTags -= (await loading).tags.size;
    }
  }
}

function refuseOlder(epoch: bigint, { promised }: FileMeta): void {
  if (epoch < promised)
    throw new LeaseholdError("LEASE_LOST", `a later primary has begun: epoch ${promised}, and not ${epoch}`);
}

/** A primary changes a file only where its epoch was promised before. */
function refuseUnpromised(epoch: bigint, meta: FileMeta): void {
  refuseOlder(epoch, meta);
  if (epoch > meta.promised)
    throw new LeaseholdError("NO_QUORUM", `epoch ${epoch} was not promised here: this node has missed it`);
}
