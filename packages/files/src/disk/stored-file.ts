import { type Extent, Extents } from "./extents.js";
import type { Placed } from "./records.js";

/** Data files are given out in such pieces, which no two blocks share. */
export const unitBytes = 4_096;

/** A block in its place. The place is used again when nothing needs it any more. */
export class Block implements Placed {
  readonly index: number;
  readonly tag: string;
  readonly start: number;
  readonly bytes: number;
  readonly checksum: number;
  /** Who needs it: what is seen, what is durable, a record on its way, a read. */
  uses = 1;

  constructor({ index, tag, start, bytes, checksum }: Placed) {
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
 * The blocks of one file: those that reads see, and of those that have changed since the last sync, what the
 * index says of them. A crash goes back to that, so its places are not used again before it says otherwise.
 */
export class StoredFile {
  readonly id: number;
  readonly path: string;
  meta: string;
  readonly #seen = new Map<number, Block>();
  readonly #durable = new Map<number, Block | undefined>();
  #extents = new Extents();
  /** Set where the name of its data file is durable. */
  made: Promise<void> | undefined;
  /** The sync that is under way, and the one that begins after it for all who have asked since. */
  syncing: Promise<void> | undefined;
  syncingNext: Promise<void> | undefined;
  /** Set when the disk could not sync: what it has lost of the blocks that changed nobody knows. */
  syncFailure: Error | undefined;
  /** Blocks that are being written. */
  writing = 0;
  /** While its data file is cut, nothing is written behind the cut. */
  cutting: Promise<void> | undefined;
  /** How far its data file may reach. */
  #reachBytes = 0;

  constructor(id: number, path: string, meta: string) {
    this.id = id;
    this.path = path;
    this.meta = meta;
  }

  /** While the index is read: the last word on a block counts. */
  restore(placed: readonly Placed[], removed: readonly number[]): void {
    for (const index of removed) this.#seen.delete(index);
    for (const each of placed) this.#seen.set(each.index, new Block(each));
  }

  /** The index has been read. */
  restored(): void {
    this.#extents = Extents.around([...this.#seen.values()].map(({ extent }) => extent));
    this.#reachBytes = this.#extents.end * unitBytes;
    if (this.#seen.size > 0) this.made = Promise.resolve();
  }

  at(index: number): Block | undefined {
    return this.#seen.get(index);
  }

  /** What reads see, in the order of the indices. */
  seen(): Block[] {
    return [...this.#seen.values()].sort((one, other) => one.index - other.index);
  }

  /** What the index says, or is to say when it is written anew. */
  durable(): Block[] {
    const unchanged = [...this.#seen.values()].filter(({ index }) => !this.#durable.has(index));
    return [...unchanged, ...[...this.#durable.values()].filter((block) => block !== undefined)];
  }

  /** Indices whose blocks the index does not know as they are seen. */
  changed(): number[] {
    return [...this.#durable.keys()];
  }

  /** Where the last place that is in use ends, if the data file reaches farther. */
  cutAt(): number | undefined {
    const endBytes = this.#extents.end * unitBytes;
    if (this.writing > 0 || endBytes >= this.#reachBytes) return undefined;
    this.#reachBytes = endBytes;
    return endBytes;
  }

  takePlace(bytes: number): Extent {
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
    if (block.uses === 0) this.#extents.give(block.extent);
  }

  /** Reads see this from now on; the index does not say so yet. */
  change(index: number, next: Block | undefined): void {
    const before = this.#seen.get(index);
    // The index still knows the first that has been replaced since the last sync, and none of the others.
    if (this.#durable.has(index)) this.release(before);
    else this.#durable.set(index, before);
    if (next === undefined) this.#seen.delete(index);
    else this.#seen.set(index, next);
  }

  /** The index says this now. It may have been replaced meanwhile, and may be what reads see. */
  committed(index: number, block: Block | undefined): void {
    const before = this.#durable.get(index);
    if (this.#seen.get(index) === block) this.#durable.delete(index);
    else {
      this.#durable.set(index, block);
      if (block !== undefined) block.uses += 1;
    }
    this.release(before);
  }
}
