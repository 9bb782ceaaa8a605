import sortedBtree from "sorted-btree";
import type { Disk, DiskFile } from "./disk.js";

// The package is CommonJS, whose `exports` is the class.
const BTree = sortedBtree.default;

/**
 * The longest small block, in bytes. Its bytes are also in the index record, so writing it costs one sync.
 */
export const smallBytesMax = 64 * 1024;
/** The shortest slot. Each larger kind of slot is twice as long as the previous one. */
const slotBytesMin = 1024;
/** The most bytes of one kind that wait in memory. They are written together. */
const pendingBytesMax = 1024 * 1024;
/** The least free space at the end of a slot file that is returned to the disk. */
const cutBytesMin = 1024 * 1024;

/** Differs from all folders of data files. */
const folder = "small";

/** A block's place. The length determines the file; `start` is the number of the slot. */
interface Place {
  readonly start: number;
  readonly bytes: number;
}

/**
 * Small blocks of all files, in slots of a few lengths, with one file for each length. A block becomes
 * durable with its index record, which has the block's bytes. The slots are written many at a time, and
 * synced before an index is rewritten. After a crash they are written again from the index.
 */
export class SmallBlocks {
  readonly #disk: Disk;
  readonly #files = new Map<number, SlotFile>();
  /** Set when a sync has failed: the disk may have lost any of the blocks. The index still has them. */
  #failure: unknown;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Sets all slots in use, after the index has been read. */
  async restored(used: Iterable<Place>): Promise<void> {
    const slots = new Map<number, Set<number>>();
    for (const { start, bytes } of used) {
      const slotBytes = slotBytesOf(bytes);
      const known = slots.get(slotBytes) ?? new Set();
      slots.set(slotBytes, known.add(start));
    }
    const names = new Set(await this.#disk.names(folder));
    for (let slotBytes = slotBytesMin; slotBytes <= smallBytesMax; slotBytes *= 2) {
      const known = slots.get(slotBytes) ?? new Set<number>();
      if (known.size === 0 && !names.has(nameOf(slotBytes))) continue;
      await this.#fileOf(slotBytes).restored(known);
    }
  }

  take(bytes: number): number {
    return bytes === 0 ? 0 : this.#fileOf(slotBytesOf(bytes)).take();
  }

  give({ start, bytes }: Place): void {
    if (bytes > 0) this.#fileOf(slotBytesOf(bytes)).give(start);
  }

  async write(start: number, bytes: Uint8Array): Promise<void> {
    if (bytes.length > 0) await this.#fileOf(slotBytesOf(bytes.length)).write(start, bytes);
  }

  async read(start: number, into: Uint8Array): Promise<number> {
    return into.length === 0 ? 0 : this.#fileOf(slotBytesOf(into.length)).read(start, into);
  }

  /** Makes all blocks written so far durable in the slots. */
  async sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (const file of this.#files.values()) await file.flush();
    try {
      const unnamed: SlotFile[] = [];
      for (const file of this.#files.values()) if (!(await file.sync())) unnamed.push(file);
      if (unnamed.length === 0) return;
      await this.#disk.syncFolder(folder);
      await this.#disk.syncFolder("");
      for (const file of unnamed) file.isNamed = true;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const file of this.#files.values()) await file.close();
  }

  #fileOf(slotBytes: number): SlotFile {
    let file = this.#files.get(slotBytes);
    if (file === undefined) {
      file = new SlotFile(this.#disk, slotBytes);
      this.#files.set(slotBytes, file);
    }
    return file;
  }
}

/** Slots of one length. */
class SlotFile {
  /** Whether the file's name is durable. */
  isNamed = false;
  readonly #disk: Disk;
  readonly #slotBytes: number;
  readonly #free = new BTree<number, true>();
  #end = 0;
  /** The upper bound of the file's length, in slots. */
  #reach = 0;
  #file: Promise<DiskFile> | undefined;
  /** The file has a name, which may not be durable. */
  #isThere = false;
  #isDirty = false;
  /** Blocks not yet in the file, by slot; and those of them that are being written. */
  #pending = new Map<number, Uint8Array>();
  #pendingBytes = 0;
  #flushing: ReadonlyMap<number, Uint8Array> = new Map();
  /** Set while the file is being written or truncated. */
  #busy: Promise<void> | undefined;

  constructor(disk: Disk, slotBytes: number) {
    this.#disk = disk;
    this.#slotBytes = slotBytes;
  }

  async restored(used: ReadonlySet<number>): Promise<void> {
    for (const slot of used) this.#end = Math.max(this.#end, slot + 1);
    for (let slot = 0; slot < this.#end; slot += 1) if (!used.has(slot)) this.#free.set(slot, true);
    const file = await this.#opened();
    const bytes = await file.size();
    this.#reach = Math.max(this.#end, Math.ceil(bytes / this.#slotBytes));
    await this.#cut();
  }

  /** The first free slot, so that the end of the file becomes free. */
  take(): number {
    const first = this.#free.minKey();
    if (first !== undefined) this.#free.delete(first);
    const slot = first ?? this.#end;
    this.#end = Math.max(this.#end, slot + 1);
    return slot;
  }

  give(slot: number): void {
    this.#forget(slot);
    this.#free.set(slot, true);
    while (this.#free.delete(this.#end - 1)) this.#end -= 1;
    const isWorth = (this.#reach - this.#end) * this.#slotBytes >= cutBytesMin;
    if (isWorth && this.#busy === undefined) void this.#alone(() => this.#cut()).catch(() => undefined);
  }

  /** Rejects if too many blocks wait and can't be written; then this block does not wait either. */
  async write(slot: number, bytes: Uint8Array): Promise<void> {
    this.#forget(slot);
    this.#pending.set(slot, bytes);
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes >= pendingBytesMax) await this.flush(pendingBytesMax);
  }

  async read(slot: number, into: Uint8Array): Promise<number> {
    const waiting = this.#pending.get(slot) ?? this.#flushing.get(slot);
    if (waiting === undefined) return (await this.#opened()).read(into, slot * this.#slotBytes);
    into.set(waiting.subarray(0, into.length));
    return Math.min(waiting.length, into.length);
  }

  /** Writes the waiting blocks, adjacent ones together, if they have at least this many bytes. */
  async flush(bytesMin = 1): Promise<void> {
    while (this.#busy !== undefined) await this.#busy.catch(() => undefined);
    if (this.#pendingBytes < bytesMin) return;
    await this.#alone(async () => {
      const taken = this.#pending;
      this.#flushing = taken;
      this.#pending = new Map();
      this.#pendingBytes = 0;
      try {
        const file = await this.#opened();
        for (const { start, bytes } of runsOf(taken, this.#slotBytes)) {
          this.#reach = Math.max(this.#reach, start + Math.ceil(bytes.length / this.#slotBytes));
          await file.write(bytes, start * this.#slotBytes);
        }
      } catch (error) {
        // Blocks that were replaced or removed meanwhile need not be kept.
        for (const [slot, bytes] of taken)
          if (!this.#pending.has(slot) && slot < this.#end && !this.#free.has(slot)) {
            this.#pending.set(slot, bytes);
            this.#pendingBytes += bytes.length;
          }
        throw error;
      } finally {
        // A sync that began meanwhile may have missed the block.
        this.#isDirty = true;
        this.#flushing = new Map();
      }
    });
  }

  #forget(slot: number): void {
    this.#pendingBytes -= this.#pending.get(slot)?.length ?? 0;
    this.#pending.delete(slot);
  }

  #alone(work: () => Promise<void>): Promise<void> {
    this.#busy = work().finally(() => (this.#busy = undefined));
    return this.#busy;
  }

  /** Returns whether the file's name is durable, or the file has no name yet. */
  async sync(): Promise<boolean> {
    if (this.#isDirty) {
      this.#isDirty = false;
      await (await this.#opened()).sync();
    }
    return this.isNamed || !this.#isThere;
  }

  async close(): Promise<void> {
    await this.#busy?.catch(() => undefined);
    await this.#file?.then((file) => file.close()).catch(() => undefined);
  }

  async #cut(): Promise<void> {
    if (this.#reach <= this.#end) return;
    this.#reach = this.#end;
    const bytes = this.#end * this.#slotBytes;
    await (await this.#opened()).truncate(bytes);
  }

  /** The next call retries a failed open. */
  async #opened(): Promise<DiskFile> {
    this.#file ??= this.#open();
    try {
      return await this.#file;
    } catch (error) {
      this.#file = undefined;
      throw error;
    }
  }

  async #open(): Promise<DiskFile> {
    await this.#disk.makeFolder(folder);
    const file = await this.#disk.open(`${folder}/${nameOf(this.#slotBytes)}`);
    this.#isThere = true;
    return file;
  }
}

/**
 * Joins blocks in adjacent slots into one piece, with zeros between the end of each block and the next slot.
 */
function* runsOf(
  blocks: ReadonlyMap<number, Uint8Array>,
  slotBytes: number,
): Generator<{ readonly start: number; readonly bytes: Uint8Array }> {
  const slots = [...blocks.keys()].sort((one, other) => one - other);
  for (let from = 0, to = 1; from < slots.length; from = to, to += 1) {
    while (slots[to] === slots[to - 1]! + 1) to += 1;
    const last = blocks.get(slots[to - 1]!)!;
    const bytes = Buffer.alloc((to - 1 - from) * slotBytes + last.length);
    for (let at = from; at < to; at += 1) bytes.set(blocks.get(slots[at]!)!, (at - from) * slotBytes);
    yield { start: slots[from]!, bytes };
  }
}

function nameOf(slotBytes: number): string {
  return `${slotBytes}.blocks`;
}

function slotBytesOf(bytes: number): number {
  let slotBytes = slotBytesMin;
  while (slotBytes < bytes) slotBytes *= 2;
  return slotBytes;
}
