import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { LeaseholdError } from "leasehold/common";
import { batchAt, isTorn, usedBytes } from "leasehold/journal";
import { checksumOf } from "leasehold/journal";
import { damaged, damagedAt, ownFileMode, syncFolder } from "./files.js";
import { readFormerSegment } from "./former-segment.js";
import { type JournalRecord, recordsOf } from "./records.js";

/**
 * The first bytes of each segment: magic and format. The checksum that the first batch continues from
 * follows.
 */
const magic = "LHWAL2\n\0";
const formerMagic = "LHWAL1\n\0";
export const segmentHeaderBytes = 16;

/**
 * Writes return when they are on disk. A separate sync after each would wake its thread twice, which costs a
 * third more CPU time.
 */
const durable = constants.O_RDWR | constants.O_DSYNC;

export function segmentName(sequence: number): string {
  return `${String(sequence).padStart(12, "0")}.wal`;
}

/** Returns undefined for any other name. */
export function segmentSequence(name: string): number | undefined {
  const digits = /^(\d{12})\.wal$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Creates a segment durably. A segment that a crash left without a head is created anew. */
export async function createSegment(folder: string, sequence: number, chain: number): Promise<FileHandle> {
  const path = join(folder, segmentName(sequence));
  const file = await open(path, durable | constants.O_CREAT | constants.O_TRUNC, ownFileMode);
  const header = Buffer.alloc(segmentHeaderBytes);
  header.write(magic, "latin1");
  header.writeUInt32LE(chain, 8);
  header.writeUInt32LE(checksumOf(header.subarray(0, 12), 0), 12);
  await file.write(header);
  await syncFolder(folder);
  return file;
}

/**
 * Opens the last segment to continue after `bytes`, and durably removes what a crash left after those. The
 * last write may be in the kernel only, if the previous process was killed while it wrote. If its disk
 * failed, the kernel may even consider pages clean that are not on disk, and no sync would write them. So the
 * last write is written again before it counts. Earlier writes are on disk, since each begins when the one
 * before has ended.
 *
 * @param last the bytes of the last write
 */
export async function openSegment(
  folder: string,
  sequence: number,
  bytes: number,
  last: Buffer,
): Promise<FileHandle> {
  const file = await open(join(folder, segmentName(sequence)), durable);
  const { size } = await file.stat();
  if (size > bytes) await file.truncate(bytes);
  await writeAll(file, last, bytes - last.length);
  await syncFolder(folder);
  return file;
}

/** Makes a segment durable that may not be on disk. */
export async function syncSegment(folder: string, sequence: number): Promise<void> {
  const file = await open(join(folder, segmentName(sequence)), durable);
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Repeats writes that accept fewer bytes than given. */
export async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

export interface SegmentContent {
  /** The checksum for the next batch to continue from. */
  readonly chain: number;
  /** End of the last valid batch; 0 if the segment must be created. */
  readonly goodBytes: number;
  /** Bytes of a write that a crash cut off; never acknowledged. */
  readonly tornBytes: number;
  /** Number of valid batches. */
  readonly batches: number;
  /** Bytes of the last valid batch, or of the head without one. */
  readonly last: Buffer;
  /** Whether it has the former format, which is read but no longer written. */
  readonly isFormer: boolean;
}

export const noSegment: SegmentContent = {
  chain: 0,
  goodBytes: 0,
  tornBytes: 0,
  batches: 0,
  last: Buffer.alloc(0),
  isFormer: false,
};

/**
 * Reads a segment batch by batch. Only the last segment may end with a torn write.
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
  const head = checkHeader(path, bytes, chain, isLast);
  if (head === undefined) return { ...noSegment, chain: chain ?? 0, tornBytes: bytes.length };
  if (head.isFormer)
    return { ...noSegment, chain: readFormerSegment(path, bytes, head.chain, take), isFormer: true };
  let checksum = head.chain;
  let offset = segmentHeaderBytes;
  let start = 0;
  let batches = 0;
  let tornBytes = 0;
  while (offset < bytes.length) {
    const batch = batchAt(bytes, offset, checksum, batches + 1);
    if (batch === undefined) {
      const used = usedBytes(bytes);
      // Preallocated room. In earlier segments, the checksum of the next one detects lost batches.
      if (used <= offset) break;
      if (!isLast || !isTorn(bytes, offset, batches + 1)) throw damagedAt(path, offset);
      tornBytes = used - offset;
      break;
    }
    for (const record of recordsOf(batch.content)) take(record);
    checksum = batch.checksum;
    start = offset;
    offset = batch.end;
    batches += 1;
  }
  const last = bytes.subarray(start, offset);
  return { chain: checksum, goodBytes: offset, tornBytes, batches, last, isFormer: false };
}

/**
 * Returns the checksum that the first batch continues from; undefined if a crash cut the file off before it
 * had a head.
 */
function checkHeader(
  path: string,
  bytes: Buffer,
  chain: number | undefined,
  isLast: boolean,
): { chain: number; isFormer: boolean } | undefined {
  const header = bytes.subarray(0, segmentHeaderBytes);
  const isWhole =
    header.length === segmentHeaderBytes && header.readUInt32LE(12) === checksumOf(header.subarray(0, 12), 0);
  if (isWhole) {
    const found = header.toString("latin1", 0, 8);
    if (found !== magic && found !== formerMagic)
      throw new LeaseholdError("VERSION_MISMATCH", `${basename(path)} is of another version of Leasehold`);
    const goesOnFrom = header.readUInt32LE(8);
    if (chain !== undefined && goesOnFrom !== chain)
      throw damaged(`${basename(path)} does not continue where the previous segment ends`);
    return { chain: goesOnFrom, isFormer: found === formerMagic };
  }
  const neverWritten = bytes.length < segmentHeaderBytes || usedBytes(bytes) === 0;
  if (isLast && neverWritten) return undefined;
  throw damaged(`the head of ${basename(path)} is damaged`);
}
