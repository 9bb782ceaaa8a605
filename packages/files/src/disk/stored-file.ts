import { type Extent, Extents } from "./extents.js";
import type { Placed } from "./records.js";
import type { SmallBlocks } from "./small-blocks.js";

/** The allocation unit of data files. No two blocks share one. */
export const unitBytes = 4_096;

/** A block and its extent, which is reused when the block has no users left. */
export class Block implements Placed {
  readonly index: number;
  readonly tag: string;
  readonly start: number;
  readonly bytes: number;
  readonly checksum: number;
  readonly isSmall: boolean;
  /** The bytes of a small block, until its record in the index is durable. */
  content: Uint8Array | undefined;
  /** The number of users: the visible state, the durable state, a record in flight, a read. */
  uses = 1;

  constructor({ index, tag, start, bytes, checksum, isSmall }: Placed, content?: Uint8Array) {
    this.isSmall = isSmall;
    this.content = content;
    this.index = index;
    this.tag = tag;
    this.start = start;
    this.bytes = bytes;
    this.checksum = checksum;
  }

  get extent(): Extent {
    return { start: this.start, units: Math.ceil(this.bytes / unitBytes) };
  }
}

/**
 * The blocks of one file: as reads see them and, for blocks changed since the last sync, as the index has
 * them. After a crash the file is as in the index, so the extents in the index are not reused before it
 * changes.
 */
export class StoredFile {
  readonly id: number;
  readonly path: string;
  meta: string;
  /** The index does not have the file yet. Its first sync makes it durable. */
  isNew = false;
  /** Its metadata are being recorded. */
  recording: Promise<void> | undefined;
  readonly #small: SmallBlocks;
  readonly #seen = new Map<number, Block>();
  readonly #durable = new Map<number, Block | undefined>();
  #extents = new Extents();
  /** Whether the file may have a data file, and whether the name of that is durable. */
  hasData = false;
  isNamed = false;
  /**
   * The sync in progress, and the next one, which serves all callers that have asked since the first began.
   */
  syncing: Promise<void> | undefined;
  syncingNext: Promise<void> | undefined;
  /** Set when a sync has failed: the disk may have lost any of the changed blocks. */
  syncFailure: Error | undefined;
  /** Blocks that are being written. */
  writing = 0;
  /** Set while the data file is truncated: nothing is written beyond the cut. */
  cutting: Promise<void> | undefined;
  /** The upper bound of its data file's length. */
  #reachBytes = 0;

  constructor(id: number, path: string, meta: string, small: SmallBlocks) {
    this.#small = small;
    this.id = id;
    this.path = path;
    this.meta = meta;
  }

  /** Called while the index is read: the last record about a block counts. */
  restore(placed: readonly Placed[], removed: readonly number[]): void {
    for (const index of removed) this.#seen.delete(index);
    for (const each of placed) this.#seen.set(each.index, new Block(each));
  }

  /** The same for a small block with its bytes, which its slot may not have. */
  restoreSmall(placed: Placed, content: Uint8Array): void {
    this.#seen.set(placed.index, new Block(placed, content));
  }

  /** Called when the index has been read. */
  restored(): void {
    const own = [...this.#seen.values()].filter(({ isSmall }) => !isSmall);
    this.#extents = Extents.around(own.map(({ extent }) => extent));
    this.#reachBytes = this.#extents.end * unitBytes;
    if (own.length > 0) this.hasData = this.isNamed = true;
  }

  at(index: number): Block | undefined {
    return this.#seen.get(index);
  }

  /** The blocks that reads see, in the order of the indices. */
  seen(): Block[] {
    return [...this.#seen.values()].sort((one, other) => one.index - other.index);
  }

  /** The blocks that are in the index, or must be when it is rewritten. */
  durable(): Block[] {
    const unchanged = [...this.#seen.values()].filter(({ index }) => !this.#durable.has(index));
    return [...unchanged, ...[...this.#durable.values()].filter((block) => block !== undefined)];
  }

  /** Indices of blocks that differ between reads and the index. */
  changed(): number[] {
    return [...this.#durable.keys()];
  }

  /** The end of the last used extent, if the data file is longer than that. */
  cutAt(): number | undefined {
    const endBytes = this.#extents.end * unitBytes;
    if (this.writing > 0 || endBytes >= this.#reachBytes) return undefined;
    this.#reachBytes = endBytes;
    return endBytes;
  }

  takePlace(bytes: number): Extent {
    this.hasData = true;
    const place = this.#extents.take(Math.ceil(bytes / unitBytes));
    this.#reachBytes = Math.max(this.#reachBytes, (place.start + place.units) * unitBytes);
    return place;
  }

  givePlace(extent: Extent): void {
    this.#extents.give(extent);
  }

  release(block: Block | undefined): void {
    if (block === undefined) return;
    block.uses -= 1;
    if (block.uses > 0) return;
    if (block.isSmall) this.#small.give(block);
    else this.#extents.give(block.extent);
  }

  /** Marks the file as removed: its blocks stay only for reads that have begun. */
  drop(): void {
    for (const block of this.#durable.values()) this.release(block);
    for (const block of this.#seen.values()) this.release(block);
    this.#durable.clear();
    this.#seen.clear();
  }

  /** Changes the block that reads see; the index follows with the next sync. */
  change(index: number, next: Block | undefined): void {
    const before = this.#seen.get(index);
    // The index still has the block of the last sync, and none of its replacements since.
    if (this.#durable.has(index)) this.release(before);
    else this.#durable.set(index, before);
    if (next === undefined) this.#seen.delete(index);
    else this.#seen.set(index, next);
  }

  /**
   * The index now has this block. It may have been replaced meanwhile, and may be the block that reads see.
   */
  committed(index: number, block: Block | undefined): void {
    if (block !== undefined) block.content = undefined;
    const before = this.#durable.get(index);
    if (this.#seen.get(index) === block) this.#durable.delete(index);
    else {
      this.#durable.set(index, block);
      if (block !== undefined) block.uses += 1;
    }
    this.release(before);
  }
}
