import { LeaseholdError } from "leasehold/common";
import { batchAt, checksumOf, isTorn, layBatch, usedBytes } from "leasehold/journal";
import type { Disk, DiskFile } from "./disk.js";

/** Its kind and format; then the checksum that the first batch continues. */
const magic = Buffer.from("LHFIDX4\n", "latin1");
/** Of the format before, without small blocks: such a log is written anew before anything is added to it. */
const magicBefore = Buffer.from("LHFIDX3\n", "latin1");
const headBytes = 16;
/** Before each record in a batch: its length. */
const lengthBytes = 4;
/**
 * Zeros that are durable before batches are written into them. So a crash leaves of a batch only sectors as
 * written, or zeros, which distinguishes it from damage.
 */
const roomBytesMin = 64 * 1024;
const roomBytesMax = 1024 * 1024;
/** Bytes written at a time while a log is rewritten, so that other work gets its turn. */
const pieceBytes = 1024 * 1024;
/** A log is rewritten when that would halve it, and when it has at least this length. */
const rewriteBytesMinDefault = 16 * 1024 * 1024;

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

/** What the owner of a log provides. */
export interface RecordLogPorts {
  /** The records of a log that is written anew. */
  readonly live: () => Iterable<Uint8Array>;
  /** Called before a log is written anew: makes durable what only its records had until then. */
  readonly beforeAnew: () => Promise<void>;
  /** Called before each write; rejects if the log must not be written. */
  readonly mayWrite: () => Promise<void>;
  readonly rewriteBytesMin?: number | undefined;
}

function nameOf(sequence: number): string {
  return `index-${String(sequence).padStart(9, "0")}.log`;
}

/**
 * Records that survive a loss of power in the order in which they were appended. All that wait while the disk
 * is busy become durable with one sync. A log that has grown, or has a failed write, is rewritten with the
 * live records: after a failed write the state of the disk is unknown.
 */
export class RecordLog {
  readonly #disk: Disk;
  readonly #ports: RecordLogPorts;
  #sequence: number;
  #file: DiskFile;
  #bytes: number;
  #bytesWhenNew: number;
  /** The checksum that the next batch's checksum continues. */
  #chain: number;
  /** Batches that the file has. */
  #batches: number;
  /** Up to here the file is there: zeros from `#bytes` on. */
  #roomEnd: number;
  /** Undefined while the log on the disk is known to have exactly what was acknowledged. */
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
   *
   * @param take is given each record, in order.
   * @throws LeaseholdError `STORE_CORRUPT` for what no crash leaves behind
   */
  static async open(disk: Disk, take: (payload: Buffer) => void, ports: RecordLogPorts): Promise<RecordLog> {
    const sequences = (await disk.names(""))
      .map((name) => Number(/^index-(\d{9})\.log$/.exec(name)?.[1] ?? Number.NaN))
      .filter((sequence) => !Number.isNaN(sequence))
      .sort((a, b) => b - a);
    const [sequence = 0, ...older] = sequences;
    const begin = await (sequence === 0 ? beginLog(disk, 1, []) : readLog(disk, sequence, take));
    // Its name may not be durable yet, if the former process died just after it began the log.
    await disk.syncFolder("");
    // A crash happened after a log was rewritten and before the former one was removed.
    for (const before of older) await disk.remove(nameOf(before));
    return new RecordLog(disk, ports, begin);
  }

  /** Resolves when it is durable, with everything appended before it; rejects with the disk's error. */
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
    // Whatever else is appended in this turn goes out with the first.
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
    // A short log takes little room of a disk that may be nearly full.
    const roomEnd = end + Math.max(roomBytesMin, Math.min(roomBytesMax, this.#bytes));
    await this.#file.write(Buffer.alloc(roomEnd - this.#roomEnd), this.#roomEnd);
    await this.#file.sync();
    this.#roomEnd = roomEnd;
  }

  /** The remains of a failed write are cut off, if the disk can. */
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

/** A write has failed and left nothing behind. */
class Undone extends Error {}

/** A write of unknown outcome. A full disk is no such case: nothing was written. */
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
  /** It has the format before. */
  readonly isBefore: boolean;
}

/**
 * A log that says this. It gets its name when all of it is durable, so it counts as a whole or not at all.
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

/** Zeros may fill the last word of a batch: no record is empty. */
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
    // The last write of the former process may only be in the kernel, which takes it for written if its sync
    // failed. So it is written again, and is durable before it counts.
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
