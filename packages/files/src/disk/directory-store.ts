import sortedBtree from "sorted-btree";
import { crc32 } from "node:zlib";
import { LeaseholdError } from "leasehold/common";
import { DirectoryLock } from "leasehold/runtime";
import type { BlockEntry, BlockStore, StoredBlock } from "../ports.js";
import { DataFiles, dataFolder } from "./data-files.js";
import type { Disk } from "./disk.js";
import { type DiskWait, DiskWatch } from "./disk-watch.js";
import { nodeDisk } from "./node-disk.js";
import { RecordLog } from "./record-log.js";
import { type IndexRecord, blocksPerRecord, decodeRecord, encodeRecord } from "./records.js";
import { SmallBlocks, smallBytesMax } from "./small-blocks.js";
import { Block, StoredFile, unitBytes } from "./stored-file.js";

// The package is CommonJS, whose `exports` is the class.
const BTree = sortedBtree.default;

/** The reserve that programs' data may not use: it leaves room for metadata, repairs and a new index. */
const reserveBytes = 64 * 1024 * 1024;

export interface DirectoryStoreOptions {
  readonly failed?: BlockDirectoryOptions["failed"];
  /** The disk. Tests supply their own. */
  readonly disk: Disk;
  /** False when another process has taken over the directory. */
  readonly isOurs?: () => Promise<boolean>;
  readonly closed?: () => Promise<void>;
  readonly reserveBytes?: number;
  /** The least length at which an index is rewritten. */
  readonly rewriteBytesMin?: number;
}

export interface BlockDirectoryOptions {
  /** Called for each operation in which the disk fails, except for lack of space. */
  readonly failed?: ((error: LeaseholdError) => void) | undefined;
  /** Called with the duration of each sync of the index or of data, ms. */
  readonly synced?: ((tookMs: number) => void) | undefined;
}

/** A node's directory. */
export interface BlockDirectory extends BlockStore {
  /** The oldest disk operation in progress. If it never returns, the disk hangs. */
  readonly oldestWait: DiskWait | undefined;
}

/**
 * Opens a node's directory, and creates it if it is missing. Only one process can have it open at a time.
 * @throws LeaseholdError `DATA_IN_USE`, `STORE_CORRUPT`, `VERSION_MISMATCH`, `STORE_FULL`, `DISK_FAILED`
 */
export async function openBlockDirectory(
  folder: string,
  { failed, synced }: BlockDirectoryOptions = {},
): Promise<BlockDirectory> {
  const lock = await DirectoryLock.take(folder).catch((error: unknown) => {
    throw diskError(`the directory ${folder} cannot be used`, error);
  });
  try {
    return await DirectoryStore.open({
      disk: nodeDisk(folder, synced),
      isOurs: () => lock.isOurs(),
      failed,
      closed: () => lock.release(),
    });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * A node's blocks in a directory: one data file per file, one for small blocks of each length, and one index
 * with each block's position and checksum. A block is never overwritten: it is written to a free place, and
 * takes effect when its record is durable, which happens after its bytes are or together with them. So an
 * interrupted write leaves the old block in place.
 */
export class DirectoryStore implements BlockDirectory {
  readonly #disk: DiskWatch;
  readonly #options: DirectoryStoreOptions;
  readonly #data: DataFiles;
  readonly #small: SmallBlocks;
  readonly #files = new BTree<string, StoredFile>(undefined, (a, b) => (a < b ? -1 : a > b ? 1 : 0));
  readonly #underWay = new Set<Promise<unknown>>();
  #log!: RecordLog;
  #node: string | undefined;
  #lastId = 0;
  #closing: Promise<void> | undefined;

  private constructor(options: DirectoryStoreOptions) {
    this.#options = options;
    this.#disk = new DiskWatch(options.disk);
    this.#data = new DataFiles(this.#disk);
    this.#small = new SmallBlocks(this.#disk);
  }

  get oldestWait(): DiskWait | undefined {
    return this.#disk.oldest;
  }

  static async open(options: DirectoryStoreOptions): Promise<DirectoryStore> {
    const store = new DirectoryStore(options);
    try {
      await store.#readIndex();
      return store;
    } catch (error) {
      throw diskError("the directory cannot be opened", error);
    }
  }

  async #readIndex(): Promise<void> {
    const names = await this.#disk.names("");
    // Without its index the disk would look empty, and its votes would count even though it has forgotten the
    // earlier ones.
    if (names.some((name) => dataFolder.test(name)) && !names.some((name) => /^index-\d+\.log$/.test(name)))
      throw new LeaseholdError("STORE_CORRUPT", "the index is missing, and blocks exist");
    const byId = new Map<number, StoredFile>();
    this.#log = await RecordLog.open(this.#disk, (payload) => this.#restore(decodeRecord(payload), byId), {
      live: () => this.#everything(),
      beforeAnew: () => this.#small.sync(),
      mayWrite: () => this.#mustBeOurs(),
      rewriteBytesMin: this.#options.rewriteBytesMin,
    });
    for (const file of byId.values()) {
      file.restored();
      this.#files.set(file.path, file);
    }
    await this.#restoreSmall();
    await this.#data.removeOthers(byId);
  }

  /** Writes the small blocks whose bytes are in the index, because their slots may not have them. */
  async #restoreSmall(): Promise<void> {
    const small: Block[] = [];
    for (const file of this.#files.values())
      for (const block of file.seen()) if (block.isSmall) small.push(block);
    await this.#small.restored(small);
    for (const block of small) {
      if (block.content !== undefined) await this.#small.write(block.start, block.content);
      block.content = undefined;
    }
  }

  #restore(record: IndexRecord, byId: Map<number, StoredFile>): void {
    switch (record.kind) {
      case "node":
        this.#node = record.record;
        break;
      case "file": {
        const { id, path, meta } = record;
        this.#lastId = Math.max(this.#lastId, id);
        const file = byId.get(id);
        if (file === undefined) byId.set(id, new StoredFile(id, path, meta, this.#small));
        else file.meta = meta;
        break;
      }
      case "blocks":
        byId.get(record.id)?.restore(record.placed, []);
        break;
      case "small":
        byId.get(record.id)?.restoreSmall(record.placed, record.content);
        break;
      case "removed":
        byId.get(record.id)?.restore([], record.indices);
        break;
      case "gone":
        byId.delete(record.id);
        break;
    }
  }

  *#everything(): Generator<Uint8Array> {
    if (this.#node !== undefined) yield encodeRecord({ kind: "node", record: this.#node });
    for (const { id, path, meta } of this.#files.values())
      yield encodeRecord({ kind: "file", id, path, meta });
    for (const file of this.#files.values()) {
      const placed = file.durable();
      for (let from = 0; from < placed.length; from += blocksPerRecord)
        yield encodeRecord({
          kind: "blocks",
          id: file.id,
          placed: placed.slice(from, from + blocksPerRecord),
        });
    }
  }

  readNode(): Promise<string | undefined> {
    return this.#run(async () => this.#node);
  }

  writeNode(record: string): Promise<void> {
    return this.#run(() => this.#append({ kind: "node", record }, () => (this.#node = record)));
  }

  readMeta(path: string): Promise<string | undefined> {
    return this.#run(async () => this.#files.get(path)?.meta);
  }

  writeMeta(path: string, meta: string): Promise<void> {
    return this.#run(async () => {
      const known = this.#files.get(path);
      const file = known ?? this.#newFile(path, meta);
      await this.#record(file, meta, () => {
        if (known === undefined) this.#files.set(path, file);
      });
    });
  }

  create(path: string, meta: string): Promise<void> {
    return this.#run(async () => {
      if (this.#files.has(path)) return;
      const file = this.#newFile(path, meta);
      file.isNew = true;
      this.#files.set(path, file);
    });
  }

  #newFile(path: string, meta: string): StoredFile {
    return new StoredFile((this.#lastId += 1), path, meta, this.#small);
  }

  listFiles(prefix: string, after: string, limit: number): Promise<string[]> {
    return this.#run(async () => {
      const found: string[] = [];
      const from = after > prefix ? after : prefix;
      for (const [path] of this.#files.entries(from)) {
        if (!path.startsWith(prefix) || found.length >= limit) break;
        if (path > after) found.push(path);
      }
      return found;
    });
  }

  listBlocks(path: string): Promise<BlockEntry[]> {
    return this.#run(async () =>
      (this.#files.get(path)?.seen() ?? []).map(({ index, tag }) => ({ index, tag })),
    );
  }

  readBlock(path: string, index: number): Promise<StoredBlock | undefined> {
    return this.#run(async () => {
      const file = this.#files.get(path);
      const block = file?.at(index);
      if (file === undefined || block === undefined) return undefined;
      // Protects the block's extent from reuse during the read.
      block.uses += 1;
      try {
        // Needs no zeroing: the buffer is either filled completely or discarded.
        const bytes = new Uint8Array(Buffer.allocUnsafeSlow(block.bytes).buffer);
        const filled = await this.#fill(file, block, bytes);
        if (filled < bytes.length || checksumOf(file.id, index, block.tag, bytes) !== block.checksum)
          throw new LeaseholdError("STORE_CORRUPT", `block ${index} of ${path} is damaged`);
        return { tag: block.tag, bytes };
      } finally {
        file.release(block);
      }
    });
  }

  async #fill(file: StoredFile, block: Block, bytes: Uint8Array): Promise<number> {
    if (block.isSmall) return this.#small.read(block.start, bytes);
    return block.bytes === 0 ? 0 : this.#data.read(file.id, bytes, block.start * unitBytes);
  }

  writeBlock(path: string, index: number, tag: string, bytes: Uint8Array): Promise<void> {
    return this.#run(async () => {
      const file = this.#fileOf(path);
      const checksum = checksumOf(file.id, index, tag, bytes);
      const placed = { index, tag, bytes: bytes.length, checksum };
      if (bytes.length > smallBytesMax) {
        const start = await this.#writeOwn(file, bytes);
        return file.change(index, new Block({ ...placed, start, isSmall: false }));
      }
      const content = Buffer.from(bytes);
      const start = await this.#writeSmall(content);
      file.change(index, new Block({ ...placed, start, isSmall: true }, content));
    });
  }

  async #writeSmall(bytes: Uint8Array): Promise<number> {
    const start = this.#small.take(bytes.length);
    try {
      await this.#small.write(start, bytes);
    } catch (error) {
      this.#small.give({ start, bytes: bytes.length });
      throw error;
    }
    return start;
  }

  /** Writes to the data file of this file. */
  async #writeOwn(file: StoredFile, bytes: Uint8Array): Promise<number> {
    while (file.cutting !== undefined) await file.cutting;
    const place = file.takePlace(bytes.length);
    file.writing += 1;
    try {
      await this.#data.write(file.id, bytes, place.start * unitBytes);
    } catch (error) {
      file.givePlace(place);
      throw error;
    } finally {
      file.writing -= 1;
    }
    return place.start;
  }

  removeBlock(path: string, index: number): Promise<void> {
    return this.#run(async () => {
      const file = this.#fileOf(path);
      if (file.at(index) !== undefined) file.change(index, undefined);
    });
  }

  removeFile(path: string): Promise<void> {
    return this.#run(async () => {
      const file = this.#files.get(path);
      if (file === undefined) return;
      await this.#append({ kind: "gone", id: file.id }, () => {
        this.#files.delete(path);
        file.drop();
      });
      // A crash before the record is durable leaves a data file that the next start removes.
      if (file.hasData) await this.#data.remove(file.id);
    });
  }

  sync(path: string): Promise<void> {
    return this.#run(async () => {
      const file = this.#files.get(path);
      if (file !== undefined) await this.#syncTogether(file);
    });
  }

  hasRoom(bytes: number): Promise<boolean> {
    return this.#run(
      async () => (await this.#disk.free()) - bytes >= (this.#options.reserveBytes ?? reserveBytes),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.#log.close();
    await this.#data.close();
    await this.#small.close();
    await this.#options.closed?.();
  }

  /** One sync serves all callers that asked before it began. If it fails, it fails for all of them. */
  #syncTogether(file: StoredFile): Promise<void> {
    if (file.syncingNext !== undefined) return file.syncingNext;
    const begin = (): Promise<void> =>
      (file.syncing = this.#syncNow(file).finally(() => (file.syncing = undefined)));
    if (file.syncing === undefined) return begin();
    return (file.syncingNext = file.syncing.finally(() => (file.syncingNext = undefined)).then(begin));
  }

  async #syncNow(file: StoredFile): Promise<void> {
    if (file.syncFailure !== undefined) throw file.syncFailure;
    const taken = file.changed().map((index) => ({ index, block: file.at(index) }));
    const placed = taken.filter(({ block }) => block !== undefined);
    const removed = taken.filter(({ block }) => block === undefined);
    const small = placed.filter(({ block }) => block!.isSmall);
    const own = placed.filter(({ block }) => !block!.isSmall);
    for (const { block } of placed) block!.uses += 1;
    const failed = (error: unknown): never => {
      for (const { block } of placed) file.release(block);
      throw error;
    };
    try {
      if (own.length > 0) await Promise.all([this.#data.sync(file.id), this.#named(file)]);
    } catch (error) {
      file.syncFailure = diskError("the disk could not sync; the node must be restarted", error);
      failed(error);
    }
    // If the file's record failed while a later record of its blocks succeeded, the blocks would belong to no
    // file.
    while (file.recording !== undefined) await file.recording.catch(failed);
    // The index gets these records in order: the file comes before its blocks.
    await Promise.all([
      ...(file.isNew ? [this.#record(file, file.meta)] : []),
      ...small.map((change) => this.#commitSmall(file, change)),
      ...pieces(own).map((some) =>
        this.#commit(file, some, { kind: "blocks", id: file.id, placed: some.map(({ block }) => block!) }),
      ),
      ...pieces(removed).map((some) =>
        this.#commit(file, some, { kind: "removed", id: file.id, indices: some.map(({ index }) => index) }),
      ),
    ]);
    await this.#cut(file);
  }

  /** Records a file with its metadata. The metadata of a new file must not be recorded after newer ones. */
  #record(file: StoredFile, meta: string, committed?: () => void): Promise<void> {
    const { id, path } = file;
    const recording = this.#append({ kind: "file", id, path, meta }, () => {
      file.meta = meta;
      file.isNew = false;
      committed?.();
    }).finally(() => {
      if (file.recording === recording) file.recording = undefined;
    });
    file.recording = recording;
    return recording;
  }

  #commitSmall(file: StoredFile, change: Change): Promise<void> {
    const { id } = file;
    const { content, ...placed } = change.block!;
    return this.#commit(file, [change], { kind: "small", id, placed, content: content! });
  }

  #commit(file: StoredFile, changes: readonly Change[], record: IndexRecord): Promise<void> {
    const done = (): void => {
      for (const { block } of changes) file.release(block);
    };
    const committed = (): void => {
      for (const { index, block } of changes) file.committed(index, block);
      done();
    };
    return this.#log.append(encodeRecord(record), committed, done);
  }

  /** Truncates the data file after its last block. */
  async #cut(file: StoredFile): Promise<void> {
    const bytes = file.cutAt();
    if (bytes === undefined) return;
    const cutting = this.#data.truncate(file.id, bytes);
    file.cutting = cutting.catch(() => undefined).finally(() => (file.cutting = undefined));
    await cutting;
  }

  async #named(file: StoredFile): Promise<void> {
    if (file.isNamed) return;
    await this.#data.name(file.id);
    file.isNamed = true;
  }

  #append(record: IndexRecord, committed: () => void): Promise<void> {
    return this.#log.append(encodeRecord(record), committed, () => undefined);
  }

  async #mustBeOurs(): Promise<void> {
    if ((await this.#options.isOurs?.()) === false)
      throw new LeaseholdError("DISK_FAILED", "the directory of this node was removed");
  }

  #fileOf(path: string): StoredFile {
    const file = this.#files.get(path);
    if (file === undefined) throw new LeaseholdError("DISK_FAILED", `${path} has no metadata yet`);
    return file;
  }

  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new LeaseholdError("CLOSED");
    const running = operation();
    this.#underWay.add(running);
    try {
      return await running;
    } catch (error) {
      const failure = diskError("the disk of this node has failed", error);
      if (failure.code === "DISK_FAILED") this.#options.failed?.(failure);
      throw failure;
    } finally {
      this.#underWay.delete(running);
    }
  }
}

interface Change {
  readonly index: number;
  readonly block: Block | undefined;
}

function pieces(changes: readonly Change[]): (readonly Change[])[] {
  return Array.from({ length: Math.ceil(changes.length / blocksPerRecord) }, (_, index) =>
    changes.slice(index * blocksPerRecord, (index + 1) * blocksPerRecord),
  );
}

/** Covers file, index and tag, so that misplaced and stale bytes are detected just like damaged ones. */
function checksumOf(id: number, index: number, tag: string, bytes: Uint8Array): number {
  const head = crc32(`${id} ${index} ${tag}`);
  return bytes.length === 0 ? head : crc32(bytes, head);
}

/** Converts a disk error to a `LeaseholdError`. */
function diskError(what: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const why = isFull ? "the disk is full" : message;
  return new LeaseholdError(isFull ? "STORE_FULL" : "DISK_FAILED", `${what}: ${why}`, { cause: error });
}
