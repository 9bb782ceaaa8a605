import { getOrInsert, LeaseholdError } from "leasehold/common";
import type { BlockEntry, BlockStore, StoredBlock } from "./ports.js";

/** A block, or undefined if it does not exist. */
type Content = StoredBlock | undefined;

interface MemoryFile {
  meta: string;
  /** Created since the last sync. */
  isNew: boolean;
  /** The blocks as reads see them. */
  readonly blocks: Map<number, StoredBlock>;
  /** For each changed block: its content at the last sync, and each content since. */
  readonly unsynced: Map<number, Content[]>;
  readonly rotten: Set<number>;
}

/** Options of a disk in memory. */
export interface MemoryStoreOptions {
  /** Awaited before and after each operation takes effect. Default: no delay. */
  readonly latency?: () => Promise<void>;
  /** Capacity for blocks in bytes. Default: unlimited. */
  readonly roomBytes?: () => number;
}

/** A disk in memory, for tests and simulations. `crash` discards unsynced changes. */
export class MemoryBlockStore implements BlockStore {
  readonly #latency: () => Promise<void>;
  readonly #roomBytes: () => number;
  readonly #files = new Map<string, MemoryFile>();
  #node: string | undefined;
  /** Counts processes: when a pending call of an earlier process finds another number, it does nothing. */
  #life = 0;
  #isClosed = false;

  constructor(options: MemoryStoreOptions = {}) {
    this.#latency = options.latency ?? (() => Promise.resolve());
    this.#roomBytes = options.roomBytes ?? (() => Infinity);
  }

  /**
   * Simulates a crash of the machine: `loses` decides for each unsynced change whether it is lost. Pending
   * calls have no effect and never settle. The next process may use the store at once.
   */
  crash(loses: () => boolean): void {
    this.#life += 1;
    this.#isClosed = false;
    for (const [path, file] of this.#files) {
      if (file.isNew && loses()) this.#files.delete(path);
      file.isNew = false;
      for (const [index, contents] of file.unsynced) {
        const kept = contents.find((_, at) => at === contents.length - 1 || loses());
        setContent(file, index, kept);
      }
      file.unsynced.clear();
    }
  }

  /** Replaces the disk by an empty one. */
  wipe(): void {
    this.#life += 1;
    this.#isClosed = false;
    this.#files.clear();
    this.#node = undefined;
  }

  /** The undamaged blocks; with `durable`, only those that would survive a crash. */
  healthyBlocks(durable = false): { readonly path: string; readonly index: number; readonly tag: string }[] {
    return [...this.#files].flatMap(([path, { blocks, rotten, unsynced }]) =>
      [...blocks]
        .filter(([index]) => !rotten.has(index) && !(durable && unsynced.has(index)))
        .map(([index, { tag }]) => ({ path, index, tag })),
    );
  }

  /** Damages a block. The next read of it detects that. */
  rot(path: string, index: number): void {
    const file = this.#files.get(path);
    if (file?.blocks.has(index) === true) file.rotten.add(index);
  }

  /** The number of damaged blocks. */
  get rottenBlocks(): number {
    return [...this.#files.values()].reduce((sum, { rotten }) => sum + rotten.size, 0);
  }

  readNode(): Promise<string | undefined> {
    return this.#run(() => this.#node);
  }

  writeNode(record: string): Promise<void> {
    return this.#run(() => {
      this.#node = record;
    });
  }

  readMeta(path: string): Promise<string | undefined> {
    return this.#run(() => this.#files.get(path)?.meta);
  }

  writeMeta(path: string, meta: string): Promise<void> {
    return this.#run(() => {
      const file = getOrInsert(this.#files, path, () => newFile(meta));
      file.meta = meta;
      file.isNew = false;
    });
  }

  create(path: string, meta: string): Promise<void> {
    return this.#run(() => {
      getOrInsert(this.#files, path, () => ({ ...newFile(meta), isNew: true }));
    });
  }

  listFiles(prefix: string, after: string, limit: number): Promise<string[]> {
    return this.#run(() =>
      [...this.#files.keys()]
        .filter((path) => path.startsWith(prefix) && path > after)
        .sort()
        .slice(0, limit),
    );
  }

  listBlocks(path: string): Promise<BlockEntry[]> {
    return this.#run(() =>
      [...(this.#files.get(path)?.blocks ?? [])]
        .map(([index, { tag }]) => ({ index, tag }))
        .sort((one, other) => one.index - other.index),
    );
  }

  readBlock(path: string, index: number): Promise<StoredBlock | undefined> {
    return this.#run(() => {
      const file = this.#files.get(path);
      if (file?.rotten.has(index) === true)
        throw new LeaseholdError("STORE_CORRUPT", `block ${index} of ${path} is damaged`);
      const block = file?.blocks.get(index);
      return block && { tag: block.tag, bytes: block.bytes.slice() };
    });
  }

  writeBlock(path: string, index: number, tag: string, bytes: Uint8Array): Promise<void> {
    return this.#run(() => {
      const file = this.#fileOf(path);
      const before = file.blocks.get(index)?.bytes.length ?? 0;
      if (bytes.length - before > this.#roomBytes()) throw new LeaseholdError("STORE_FULL");
      this.#change(file, index, { tag, bytes: new Uint8Array(bytes) });
    });
  }

  removeBlock(path: string, index: number): Promise<void> {
    return this.#run(() => this.#change(this.#fileOf(path), index, undefined));
  }

  removeFile(path: string): Promise<void> {
    return this.#run(() => void this.#files.delete(path));
  }

  sync(path: string): Promise<void> {
    return this.#run(() => {
      const file = this.#files.get(path);
      if (file === undefined) return;
      file.isNew = false;
      file.unsynced.clear();
    });
  }

  hasRoom(bytes: number): Promise<boolean> {
    return this.#run(() => this.#roomBytes() >= bytes);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  #fileOf(path: string): MemoryFile {
    const file = this.#files.get(path);
    if (file === undefined) throw new LeaseholdError("DISK_FAILED", `${path} has no metadata yet`);
    return file;
  }

  #change(file: MemoryFile, index: number, content: Content): void {
    getOrInsert(file.unsynced, index, () => [file.blocks.get(index)]).push(content);
    setContent(file, index, content);
  }

  async #run<T>(operation: () => T): Promise<T> {
    const life = this.#life;
    if (this.#isClosed) throw new LeaseholdError("CLOSED");
    await this.#latency();
    if (life !== this.#life) return new Promise(() => undefined);
    const result = operation();
    await this.#latency();
    if (life !== this.#life) return new Promise(() => undefined);
    return result;
  }
}

function newFile(meta: string): MemoryFile {
  return { meta, isNew: false, blocks: new Map(), unsynced: new Map(), rotten: new Set() };
}

function setContent(file: MemoryFile, index: number, content: Content): void {
  file.rotten.delete(index);
  if (content === undefined) file.blocks.delete(index);
  else file.blocks.set(index, content);
}
