import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { LeaseholdError } from "../../lease/errors.js";
import { checksumOf } from "./checksum.js";
import { damaged, syncFolder } from "./files.js";
import { headerBytes, type JournalRecord, parsePayload, readHeader } from "./records.js";

/**
 * The first bytes of each segment: what it is, its format, and the checksum that its first record goes on
 * from.
 */
const magic = "LHWAL1\n\0";
export const segmentHeaderBytes = 16;

/**
 * A write returns when it is on disk. With a call to sync after each write, the thread that does both would be
 * woken twice for each: a third more CPU time.
 */
const durable = constants.O_RDWR | constants.O_DSYNC;

/** Disks lose whole sectors: one of zeros in a record that should have none was never written. */
const sectorBytes = 512;

export function segmentName(sequence: number): string {
  return `${String(sequence).padStart(12, "0")}.wal`;
}

/** Undefined for the name of something else. */
export function segmentSequence(name: string): number | undefined {
  const digits = /^(\d{12})\.wal$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * Creates a segment that survives a loss of power. One that a crash has left without a head is written anew.
 */
export async function createSegment(folder: string, sequence: number, chain: number): Promise<FileHandle> {
  const path = join(folder, segmentName(sequence));
  const file = await open(path, durable | constants.O_CREAT | constants.O_TRUNC, 0o666);
  const header = Buffer.alloc(segmentHeaderBytes);
  header.write(magic, "latin1");
  header.writeUInt32LE(chain, 8);
  header.writeUInt32LE(checksumOf(header.subarray(0, 12), 0), 12);
  await file.write(header);
  await syncFolder(folder);
  return file;
}

/**
 * Opens the last segment to go on after `bytes`; what a crash has left after those is removed, and stays
 * removed. What was read of it may only be in the kernel, if the process before was killed while it wrote: it
 * is on disk before anybody counts it. The segments before it are, as each one is begun after the last write
 * to the one before.
 */
export async function openSegment(folder: string, sequence: number, bytes: number): Promise<FileHandle> {
  const file = await open(join(folder, segmentName(sequence)), durable);
  const { size } = await file.stat();
  if (size > bytes) await file.truncate(bytes);
  await file.datasync();
  await syncFolder(folder);
  return file;
}

export interface SegmentContent {
  /** To go on from. */
  readonly chain: number;
  /** Where the last good record ends. */
  readonly goodBytes: number;
  /**
   * What follows it was cut off by a crash in the middle of a write; nobody was ever told that it was there.
   */
  readonly tornBytes: number;
}

/**
 * Reads a segment record by record. Only the end of the last one may be torn.
 *
 * @throws LeaseholdError `LOG_CORRUPT`, `VERSION_MISMATCH`
 */
export async function readSegment(
  path: string,
  chain: number | undefined,
  isLast: boolean,
  take: (record: JournalRecord) => void,
): Promise<SegmentContent> {
  const bytes = await readFile(path);
  let checksum = checkHeader(path, bytes, chain, isLast);
  if (checksum === undefined) return { chain: chain ?? 0, goodBytes: 0, tornBytes: bytes.length };
  let offset = segmentHeaderBytes;
  while (offset < bytes.length) {
    const record = recordAt(bytes, offset, checksum);
    if (record === undefined) {
      if (isUnused(bytes, offset)) break;
      if (isLast && isTorn(bytes, offset))
        return { chain: checksum, goodBytes: offset, tornBytes: usedBytes(bytes) - offset };
      const text = `${basename(path)} is damaged at byte ${offset}: the checksum is wrong, and it is not the end that a crash leaves`;
      throw damaged(text);
    }
    take(parsePayload(record.payload));
    checksum = record.checksum;
    offset += headerBytes + record.payload.length;
  }
  return { chain: checksum, goodBytes: offset, tornBytes: 0 };
}

/**
 * The checksum that the first record goes on from; nothing if the file was cut off before it had a header.
 */
function checkHeader(
  path: string,
  bytes: Buffer,
  chain: number | undefined,
  isLast: boolean,
): number | undefined {
  const header = bytes.subarray(0, segmentHeaderBytes);
  const isWhole =
    header.length === segmentHeaderBytes && header.readUInt32LE(12) === checksumOf(header.subarray(0, 12), 0);
  if (isWhole) {
    if (header.toString("latin1", 0, 8) !== magic)
      throw new LeaseholdError("VERSION_MISMATCH", `${basename(path)} is of another version of Leasehold`);
    const goesOnFrom = header.readUInt32LE(8);
    if (chain !== undefined && goesOnFrom !== chain)
      throw damaged(`${basename(path)} does not go on where the segment before it ends`);
    return goesOnFrom;
  }
  const neverWritten = bytes.length < segmentHeaderBytes || bytes.every((byte) => byte === 0);
  if (isLast && neverWritten) return undefined;
  throw damaged(`the head of ${basename(path)} is damaged`);
}

function recordAt(
  bytes: Buffer,
  offset: number,
  chain: number,
): { payload: Buffer; checksum: number } | undefined {
  const start = offset + headerBytes;
  const header = readHeader(bytes.subarray(offset, start));
  if (header === undefined || start + header.length > bytes.length) return undefined;
  const payload = bytes.subarray(start, start + header.length);
  const checksum = checksumOf(payload, chain);
  return checksum === header.checksum ? { payload, checksum } : undefined;
}

/**
 * The room that a process had made ready, and had not used when it ended. In a segment that is not the last,
 * records that were lost there are noticed by the next one's checksum.
 */
function isUnused(bytes: Buffer, offset: number): boolean {
  return bytes.subarray(offset).equals(Buffer.alloc(bytes.length - offset));
}

/** Without the room after it that nothing was written to. */
function usedBytes(bytes: Buffer): number {
  return bytes.findLastIndex((byte) => byte !== 0) + 1;
}

/**
 * What a crash in the middle of a write leaves: a file that ends before its record does, or sectors that were
 * never written and read as zeros. A bit that has turned over looks otherwise, and what was acknowledged must
 * not be dropped for it.
 */
function isTorn(bytes: Buffer, offset: number): boolean {
  const start = offset + headerBytes;
  const end = start + (readHeader(bytes.subarray(offset, start))?.length ?? 0);
  return end > bytes.length || hasEmptySector(bytes, offset, end);
}

function hasEmptySector(bytes: Buffer, from: number, to: number): boolean {
  for (let start = from; start < to;) {
    const stop = Math.min(to, (Math.floor(start / sectorBytes) + 1) * sectorBytes);
    if (bytes.subarray(start, stop).every((byte) => byte === 0)) return true;
    start = stop;
  }
  return false;
}
