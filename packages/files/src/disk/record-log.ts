import { crc32 } from "node:zlib";
import { LeaseholdError } from "leasehold/common";
import type { Disk, DiskFile } from "./disk.js";

/** What it is and its format; then the checksum that the first record goes on from. */
const magic = Buffer.from("LHFIDX1\n", "latin1");
const headBytes = 16;
/**
 * Of each record, before its payload: its length, a checksum of that alone, so that a wrong length is not
 * taken for the end of the log, and a checksum of all that goes on from the record before.
 */
const recordHeadBytes = 12;
/** A record that says more is damaged. */
export const payloadBytesMax = 1024 * 1024;
/** Disks lose whole sectors: one of zeros in a record that should have none was never written. */
const sectorBytes = 512;
/** Written at a time while a log is begun anew, so that others get their turn. */
const pieceBytes = 1024 * 1024;
/** A log is begun anew when it is twice as long as it would be then, and at least so long. */
const rewriteBytesMin = 4 * 1024 * 1024;

/** Something that is to become durable, and what follows from how that ends. */
interface Entry {
  readonly payload: Uint8Array;
  /** It is durable. Called in the order of the records, before anything else is written. */
  readonly committed: () => void;
  /** It is not in the log, and never will be. Not called at once if the disk may have it after all. */
  readonly abandoned: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function nameOf(sequence: number): string {
  return `index-${String(sequence).padStart(9, "0")}.log`;
}

/**
 * Records that survive a loss of power in the order in which they were appended. All that wait while the disk
 * is busy become durable with one sync. A log that has grown, and one of which a write has failed, is begun
 * anew with what is live: of a failed write nobody knows what the disk has.
 */
export class RecordLog {
  readonly #disk: Disk;
  readonly #live: () => Iterable<Uint8Array>;
  #sequence: number;
  #file: DiskFile;
  #bytes: number;
  #bytesWhenNew: number;
  /** What the next record's checksum goes on from. */
  #chain: number;
  /** Undefined while the log on the disk is known to say what was acknowledged and nothing else. */
  #doubtful: Entry[] | undefined;
  readonly #waiting: Entry[] = [];
  #draining: Promise<void> | undefined;
  #isClosed = false;

  private constructor(disk: Disk, live: () => Iterable<Uint8Array>, begin: Begin) {
    this.#disk = disk;
    this.#live = live;
    this.#sequence = begin.sequence;
    this.#file = begin.file;
    this.#bytes = begin.bytes;
    this.#bytesWhenNew = begin.bytes;
    this.#chain = begin.chain;
  }

  /**
   * Reads what is there, and cuts off what a crash has left half written at its end.
   *
   * @param take is given each record, in order.
   * @param live what a log has to say that is begun anew.
   * @throws LeaseholdError `STORE_CORRUPT` for what no crash leaves behind
   */
  static async open(
    disk: Disk,
    take: (payload: Buffer) => void,
    live: () => Iterable<Uint8Array>,
  ): Promise<RecordLog> {
    const sequences = (await disk.names(""))
      .map((name) => Number(/^index-(\d{9})\.log$/.exec(name)?.[1] ?? Number.NaN))
      .filter((sequence) => !Number.isNaN(sequence))
      .sort((a, b) => b - a);
    const [sequence = 0, ...older] = sequences;
    const begin = await (sequence === 0 ? beginLog(disk, 1, []) : readLog(disk, sequence, take));
    // A crash came between a log that was begun anew and the removal of the one before.
    for (const before of older) await disk.remove(nameOf(before));
    return new RecordLog(disk, live, begin);
  }

  /** Resolves when it is durable, with all that was appended before it; rejects with what the disk said. */
  append(payload: Uint8Array, committed: () => void, abandoned: () => void): Promise<void> {
    if (this.#isClosed) {
      abandoned();
      return Promise.reject(new LeaseholdError("CLOSED"));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ payload, committed, abandoned, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
    await this.#file.close();
  }

  async #drain(): Promise<void> {
    // Whatever else is appended in this turn goes out with the first.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0);
      try {
        const isLong = this.#bytes > Math.max(rewriteBytesMin, 2 * this.#bytesWhenNew);
        if (this.#doubtful !== undefined || isLong) await this.#beginAnew();
      } catch (error) {
        for (const entry of together) entry.abandoned();
        for (const entry of together) entry.reject(error);
        continue;
      }
      await this.#write(together);
    }
    this.#draining = undefined;
  }

  async #write(together: readonly Entry[]): Promise<void> {
    const { bytes, chain } = encode(
      together.map(({ payload }) => payload),
      this.#chain,
    );
    try {
      await this.#file.write(bytes, this.#bytes).catch((error) => this.#undo(error));
      await this.#file.sync();
    } catch (error) {
      if (error instanceof Undone) for (const entry of together) entry.abandoned();
      else this.#doubtful = [...(this.#doubtful ?? []), ...together];
      for (const entry of together) entry.reject(error instanceof Undone ? error.cause : failed(error));
      return;
    }
    this.#chain = chain;
    this.#bytes += bytes.length;
    for (const entry of together) entry.committed();
    for (const entry of together) entry.resolve();
  }

  /** What a write has left behind before it failed is cut off, if the disk does as much. */
  async #undo(cause: unknown): Promise<never> {
    await this.#file.truncate(this.#bytes);
    await this.#file.sync();
    throw new Undone(undefined, { cause });
  }

  async #beginAnew(): Promise<void> {
    const before = this.#file;
    const begin = await beginLog(this.#disk, this.#sequence + 1, this.#live());
    this.#sequence = begin.sequence;
    this.#file = begin.file;
    this.#bytes = begin.bytes;
    this.#bytesWhenNew = begin.bytes;
    this.#chain = begin.chain;
    for (const entry of this.#doubtful ?? []) entry.abandoned();
    this.#doubtful = undefined;
    await before.close();
    await this.#disk.remove(nameOf(begin.sequence - 1));
  }
}

/** A write has failed, and is as if it had never been. */
class Undone extends Error {}

/** A write that is neither done nor undone; a full disk is one that nothing was written to. */
function failed(error: unknown): LeaseholdError {
  const why = error instanceof Error ? error.message : String(error);
  return new LeaseholdError("DISK_FAILED", `the index cannot be written: ${why}`, { cause: error });
}

interface Begin {
  readonly sequence: number;
  readonly file: DiskFile;
  readonly bytes: number;
  readonly chain: number;
}

/** A log that says this. It has its name when all of it is durable, so that it counts whole or not at all. */
async function beginLog(disk: Disk, sequence: number, live: Iterable<Uint8Array>): Promise<Begin> {
  const building = `${nameOf(sequence)}.new`;
  await disk.remove(building);
  const file = await disk.open(building);
  try {
    const head = Buffer.alloc(headBytes);
    head.set(magic);
    head.writeUInt32LE(crc32(head.subarray(0, 12)), 12);
    let chain = head.readUInt32LE(12);
    await file.write(head, 0);
    let bytes = headBytes;
    let piece: Uint8Array[] = [];
    const flush = async (): Promise<void> => {
      const encoded = encode(piece, chain);
      await file.write(encoded.bytes, bytes);
      chain = encoded.chain;
      bytes += encoded.bytes.length;
      piece = [];
    };
    let waiting = 0;
    for (const payload of live) {
      piece.push(payload);
      waiting += payload.length;
      if (waiting < pieceBytes) continue;
      await flush();
      waiting = 0;
    }
    if (piece.length > 0) await flush();
    await file.sync();
    await disk.rename(building, nameOf(sequence));
    await disk.syncFolder("");
    return { sequence, file, bytes, chain };
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

function encode(payloads: readonly Uint8Array[], before: number): { bytes: Buffer; chain: number } {
  let chain = before;
  const parts: Uint8Array[] = [];
  for (const payload of payloads) {
    const head = Buffer.alloc(recordHeadBytes);
    head.writeUInt32LE(payload.length, 0);
    head.writeUInt32LE(crc32(head.subarray(0, 4)), 4);
    chain = crc32(payload, crc32(head.subarray(0, 4), chain));
    head.writeUInt32LE(chain, 8);
    parts.push(head, payload);
  }
  return { bytes: Buffer.concat(parts), chain };
}

async function readLog(disk: Disk, sequence: number, take: (payload: Buffer) => void): Promise<Begin> {
  const file = await disk.open(nameOf(sequence));
  try {
    const all = Buffer.alloc(await file.size());
    await file.read(all, 0);
    const head = all.subarray(0, headBytes);
    if (head.length < headBytes || head.readUInt32LE(12) !== crc32(head.subarray(0, 12)))
      throw damaged(sequence, 0);
    if (!head.subarray(0, magic.length).equals(magic))
      throw new LeaseholdError("VERSION_MISMATCH", `${nameOf(sequence)} is of another version of Leasehold`);
    let chain = head.readUInt32LE(12);
    let offset = headBytes;
    while (offset < all.length) {
      const record = recordAt(all, offset, chain);
      if (record === undefined) {
        if (!isTorn(all, offset)) throw damaged(sequence, offset);
        await file.truncate(offset);
        break;
      }
      take(record.payload);
      chain = record.chain;
      offset += recordHeadBytes + record.payload.length;
    }
    // What the process before has written may only be in the kernel: it is durable before anybody counts it.
    await file.sync();
    return { sequence, file, bytes: offset, chain };
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

/** The length of the payload at this place; undefined if that is not what was written. */
function lengthAt(all: Buffer, offset: number): number | undefined {
  const length = all.readUInt32LE(offset);
  const isWritten = crc32(all.subarray(offset, offset + 4)) === all.readUInt32LE(offset + 4);
  return isWritten && length <= payloadBytesMax ? length : undefined;
}

function recordAt(all: Buffer, offset: number, before: number) {
  const start = offset + recordHeadBytes;
  const length = start > all.length ? undefined : lengthAt(all, offset);
  if (length === undefined || start + length > all.length) return undefined;
  const payload = all.subarray(start, start + length);
  const chain = crc32(payload, crc32(all.subarray(offset, offset + 4), before));
  return chain === all.readUInt32LE(offset + 8) ? { payload, chain } : undefined;
}

/**
 * What a crash in the middle of a write leaves: a file that ends before its record does, or sectors that were
 * never written and read as zeros. What was acknowledged must not be dropped for a bit that has turned over.
 */
function isTorn(all: Buffer, offset: number): boolean {
  const start = offset + recordHeadBytes;
  if (start > all.length) return true;
  const length = lengthAt(all, offset);
  const end = start + (length ?? 0);
  return end > all.length || hasEmptySector(all.subarray(0, end), offset);
}

/** True if what stands from there on in one sector is all zeros. */
function hasEmptySector(all: Buffer, from: number): boolean {
  for (let start = from; start < all.length;) {
    const stop = Math.min(all.length, (Math.floor(start / sectorBytes) + 1) * sectorBytes);
    if (all.subarray(start, stop).every((byte) => byte === 0)) return true;
    start = stop;
  }
  return false;
}

function damaged(sequence: number, offset: number): LeaseholdError {
  return new LeaseholdError(
    "STORE_CORRUPT",
    `${nameOf(sequence)} is damaged at byte ${offset}, and not as a crash leaves it: move the directory away, and start the node with an empty one, which the others fill`,
  );
}
