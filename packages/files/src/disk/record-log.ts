import { LeaseholdError } from "leasehold/common";
import { batchAt, checksumOf, isTorn, layBatch, usedBytes } from "leasehold/journal";
import type { Disk, DiskFile } from "./disk.js";

/** Kind and format of the log, followed by the checksum that the first batch continues. */
const magic = Buffer.from("LHFIDX4\n", "latin1");
/** The previous format, without small blocks. Such a log is rewritten before anything is added to it. */
const magicBefore = Buffer.from("LHFIDX3\n", "latin1");
const headBytes = 16;
/** Precedes each record in a batch: its length. */
const lengthBytes = 4;
/**
 * Zeros that are durable before a batch is written over them. After a crash each sector of the batch is
 * therefore either as written or zero, which distinguishes a crash from damage.
 */
const roomBytesMin = 64 * 1024;
const roomBytesMax = 1024 * 1024;
/** Bytes written at a time while a log is rewritten, so that other work can run in between. */
const pieceBytes = 1024 * 1024;
/** A log of at least this length is rewritten when that would halve it. */
const rewriteBytesMinDefault = 16 * 1024 * 1024;

/** A record waiting to become durable, and what happens when it succeeds or fails. */
interface Entry {
  readonly payload: Uint8Array;
  /** Called when the record is durable: in the order of the records, before anything else is written. */
  readonly committed: () => void;
  /** Called when the record is not in the log and never will be. Delayed while the disk may still have it. */
  readonly abandoned: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What the owner of a log provides. */
export interface RecordLogPorts {
  /** The records to keep when a log is rewritten. */
  readonly live: () => Iterable<Uint8Array>;
  /**
   * Called before a log is rewritten. Must make durable everything that so far is only in the log's records.
   */
  readonly beforeAnew: () => Promise<void>;
  /** Called before each write. Rejects if the log must not be written. */
  readonly mayWrite: () => Promise<void>;
  readonly rewriteBytesMin?: number | undefined;
}

function nameOf(sequence: number): string {
  return `index-${String(sequence).padStart(9, "0")}.log`;
}

/**
 * Records that survive a loss of power, in the order in which they were appended. All records that arrive
 * while the disk is busy become durable with one sync. A log is rewritten with the live records when it has
 * grown too long, or when a write failed: after that the state of the disk is unknown.
 */
export class RecordLog {
  readonly #disk: Disk;
  readonly #ports: RecordLogPorts;
  #sequence: number;
  #file: DiskFile;
  #bytes: number;
  #bytesWhenNew: number;
  /** The checksum that the next batch continues. */
  #chain: number;
  /** The number of batches in the file. */
  #batches: number;
  /** The file reaches up to here. It has zeros from `#bytes` on. */
  #roomEnd: number;
  /** Undefined while the log on disk is known to contain exactly what was acknowledged. */
  #doubtful: Entry[] | undefined;
  readonly #waiting: Entry[] = [];
  #draining: Promise<void> | undefined;
  #isClosed = false;

  private constructor(disk: Disk, ports: RecordLogPorts, begin: Begin) {
    this.#disk = disk;
    this.#ports = ports;
    if (begin.isBefore) this.#doubtful = [];
    this.#sequence = begin.sequence;
    this.#file = begin.file;
    this.#bytes = begin.bytes;
    this.#bytesWhenNew = begin.bytes;
    this.#chain = begin.chain;
    this.#batches = begin.batches;
    this.#roomEnd = begin.bytes;
  }

  /**
   * Reads the log, and cuts off an unfinished write at its end.
   * @param take called with each record, in order.
   * @throws LeaseholdError `STORE_CORRUPT` for a log that no crash can leave behind
   */
  static async open(disk: Disk, take: (payload: Buffer) => void, ports: RecordLogPorts): Promise<RecordLog> {
    const sequences = (await disk.names(""))
      .map((name) => Number(/^index-(\d{9})\.log$/.exec(name)?.[1] ?? Number.NaN))
      .filter((sequence) => !Number.isNaN(sequence))
      .sort((a, b) => b - a);
    const [sequence = 0, ...older] = sequences;
    const begin = await (sequence === 0 ? beginLog(disk, 1, []) : readLog(disk, sequence, take));
    // The log's name may not be durable yet: the previous process may have died just after it began the log.
    await disk.syncFolder("");
    // If a crash happened after a log was rewritten, the old log may still be there.
    for (const before of older) await disk.remove(nameOf(before));
    return new RecordLog(disk, ports, begin);
  }

  /**
   * Resolves when the record and everything appended before it are durable. Rejects with the disk's error.
   */
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

  /** Waits for writes in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
    await this.#file.close();
  }

  async #drain(): Promise<void> {
    // Batches everything that is appended in the same turn of the event loop.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0);
      try {
        await this.#ports.mayWrite();
        const { rewriteBytesMin = rewriteBytesMinDefault } = this.#ports;
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
    const parts = together.flatMap(({ payload }) => partsOf(payload));
    const { bytes, checksum } = layBatch(parts, this.#chain, this.#bytes, this.#batches + 1);
    try {
      await this.#makeRoom(this.#bytes + bytes.length).catch((error) => this.#undo(error));
      await this.#file.write(bytes, this.#bytes).catch((error) => this.#undo(error));
      await this.#file.sync();
    } catch (error) {
      if (error instanceof Undone) for (const entry of together) entry.abandoned();
      else this.#doubtful = [...(this.#doubtful ?? []), ...together];
      for (const entry of together) entry.reject(error instanceof Undone ? error.cause : failed(error));
      return;
    }
    this.#chain = checksum;
    this.#batches += 1;
    this.#bytes += bytes.length;
    for (const entry of together) entry.committed();
    for (const entry of together) entry.resolve();
  }

  async #makeRoom(end: number): Promise<void> {
    if (end <= this.#roomEnd) return;
    // Keeps the room for a short log small, because the disk may be nearly full.
    const roomEnd = end + Math.max(roomBytesMin, Math.min(roomBytesMax, this.#bytes));
    await this.#file.write(Buffer.alloc(roomEnd - this.#roomEnd), this.#roomEnd);
    await this.#file.sync();
    this.#roomEnd = roomEnd;
  }

  /** The remains of a failed write are cut off, if the disk allows it. */
  async #undo(cause: unknown): Promise<never> {
    await this.#file.truncate(this.#bytes);
    await this.#file.sync();
    this.#roomEnd = this.#bytes;
    throw new Undone(undefined, { cause });
  }

  async #beginAnew(): Promise<void> {
    const before = this.#file;
    await this.#ports.beforeAnew();
    const begin = await beginLog(this.#disk, this.#sequence + 1, this.#ports.live());
    this.#sequence = begin.sequence;
    this.#file = begin.file;
    this.#bytes = begin.bytes;
    this.#bytesWhenNew = begin.bytes;
    this.#chain = begin.chain;
    this.#batches = begin.batches;
    this.#roomEnd = begin.bytes;
    for (const entry of this.#doubtful ?? []) entry.abandoned();
    this.#doubtful = undefined;
    await before.close();
    await this.#disk.remove(nameOf(begin.sequence - 1));
  }
}

/** A write failed without leaving anything behind. */
class Undone extends Error {}

/** The error for a write of unknown outcome. (On a full disk the outcome is known: nothing was written.) */
function failed(error: unknown): LeaseholdError {
  const why = error instanceof Error ? error.message : String(error);
  return new LeaseholdError("DISK_FAILED", `the index cannot be written: ${why}`, { cause: error });
}

interface Begin {
  readonly sequence: number;
  readonly file: DiskFile;
  readonly bytes: number;
  readonly chain: number;
  readonly batches: number;
  /** The log has the previous format. */
  readonly isBefore: boolean;
}

/**
 * A log with these records. It gets its name only when all of it is durable, so it counts completely or not
 * at all.
 */
async function beginLog(disk: Disk, sequence: number, live: Iterable<Uint8Array>): Promise<Begin> {
  const building = `${nameOf(sequence)}.new`;
  await disk.remove(building);
  const file = await disk.open(building);
  try {
    const head = headOf();
    let chain = head.readUInt32LE(12);
    await file.write(head, 0);
    let bytes = headBytes;
    let batches = 0;
    let piece: Uint8Array[] = [];
    const flush = async (): Promise<void> => {
      const laid = layBatch(piece.flatMap(partsOf), chain, bytes, batches + 1);
      await file.write(laid.bytes, bytes);
      chain = laid.checksum;
      bytes += laid.bytes.length;
      batches += 1;
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
    return { sequence, file, bytes, chain, batches, isBefore: false };
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

function headOf(): Buffer {
  const head = Buffer.alloc(headBytes);
  head.set(magic);
  head.writeUInt32LE(checksumOf(head.subarray(0, 12), 0), 12);
  return head;
}

function partsOf(payload: Uint8Array): [Uint8Array, Uint8Array] {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(payload.length);
  return [length, payload];
}

/** Zeros may pad the last word of a batch, because no record is empty. */
function* payloadsOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at + lengthBytes <= content.length;) {
    const length = content.readUInt32LE(at);
    if (length === 0) return;
    yield content.subarray(at + lengthBytes, at + lengthBytes + length);
    at += lengthBytes + length;
  }
}

async function readLog(disk: Disk, sequence: number, take: (payload: Buffer) => void): Promise<Begin> {
  const file = await disk.open(nameOf(sequence));
  try {
    const all = Buffer.alloc(await file.size());
    await file.read(all, 0);
    let chain = chainOfHead(sequence, all);
    let offset = headBytes;
    let batches = 0;
    let last = 0;
    const used = usedBytes(all);
    while (offset < used) {
      const batch = batchAt(all, offset, chain, batches + 1);
      if (batch === undefined) {
        if (!isTorn(all, offset, batches + 1)) throw damaged(sequence, offset);
        break;
      }
      for (const payload of payloadsOf(batch.content)) take(payload);
      chain = batch.checksum;
      last = offset;
      offset = batch.end;
      batches += 1;
    }
    if (offset < all.length) await file.truncate(offset);
    // The previous process' last write may be only in the kernel's cache, which can treat data as written
    // even though its sync failed. So it is written again, and synced before it counts.
    await file.write(all.subarray(last, offset), last);
    await file.sync();
    const isBefore = !all.subarray(0, magic.length).equals(magic);
    return { sequence, file, bytes: offset, chain, batches, isBefore };
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

/** The checksum that the first batch continues. */
function chainOfHead(sequence: number, all: Buffer): number {
  const head = all.subarray(0, headBytes);
  if (head.length < headBytes || head.readUInt32LE(12) !== checksumOf(head.subarray(0, 12), 0))
    throw damaged(sequence, 0);
  if (![magic, magicBefore].some((known) => head.subarray(0, magic.length).equals(known)))
    throw new LeaseholdError("VERSION_MISMATCH", `${nameOf(sequence)} is of another version of Leasehold`);
  return head.readUInt32LE(12);
}

function damaged(sequence: number, offset: number): LeaseholdError {
  return new LeaseholdError(
    "STORE_CORRUPT",
    `${nameOf(sequence)} is damaged at byte ${offset}, and not as a crash leaves it: move the directory away, and start the node with an empty one, which the others fill`,
  );
}
