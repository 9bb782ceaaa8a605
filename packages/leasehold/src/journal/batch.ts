import { checksumOf } from "./checksum.js";

/**
 * The layout of one write in a segment. A *batch* is a head (`length`, `checksum`, the head's own checksum, 4
 * bytes each, little-endian) and content of that length. The content consists of whole words; the last may be
 * padded with zeros. The checksum continues that of the preceding batch, also across segments: a missing,
 * repeated or misplaced batch is as invalid as a damaged one.
 *
 * In the file, the last word of each sector and the last word of each batch is a *mark*: the number of the
 * batch. So the part of a sector that holds a batch is never all zeros, whatever the content; before the
 * write it is. This distinguishes a write that the disk lost from later damage.
 */
const headBytes = 12;
const noHead = Buffer.alloc(headBytes);

/** Disks write a sector as a whole; a disk with larger sectors writes several of these at once. */
export const sectorBytes = 512;
const wordBytes = 4;
const roomInSector = sectorBytes - wordBytes;

/** Bits that are always set, so that a single flipped bit doesn't turn a mark into zeros. */
const markBits = 0xf0000000;
const numberBits = 0x0fffffff;

export interface LaidBatch {
  readonly bytes: Buffer;
  readonly checksum: number;
}

export interface FoundBatch {
  readonly content: Buffer;
  readonly checksum: number;
  /** The offset of the next batch. */
  readonly end: number;
}

/**
 * @param offset the batch's position in the segment @param number the first batch of a segment is number 1
 */
export function layBatch(
  parts: readonly Uint8Array[],
  chain: number,
  offset: number,
  number: number,
): LaidBatch {
  const length = parts.reduce((sum, part) => sum + part.length, headBytes);
  const plain = Buffer.concat([noHead, ...parts], wholeWords(length));
  const checksum = checksumOf(plain.subarray(headBytes), chain);
  plain.writeUInt32LE(plain.length - headBytes, 0);
  plain.writeUInt32LE(checksum, 4);
  plain.writeUInt32LE(checksumOf(plain.subarray(0, 8), 0), 8);
  const mark = markOf(number);
  const end = endOf(offset, plain.length);
  const bytes = Buffer.alloc(end - offset);
  eachStretch(offset, plain.length, (from, at, length) =>
    plain.copy(bytes, at - offset, from, from + length),
  );
  for (let at = markAfter(offset); at < end; at += sectorBytes) bytes.writeUInt32LE(mark, at - offset);
  bytes.writeUInt32LE(mark, bytes.length - wordBytes);
  return { bytes, checksum };
}

/** The batch with that number; `undefined` if there is no intact one at the offset. */
export function batchAt(
  bytes: Buffer,
  offset: number,
  chain: number,
  number: number,
): FoundBatch | undefined {
  const head = headAt(bytes, offset);
  if (head === undefined || head.end > bytes.length) return undefined;
  const { end, length, checksum } = head;
  const mark = markOf(number);
  if (bytes.readUInt32LE(end - wordBytes) !== mark) return undefined;
  for (let at = markAfter(offset); at < end; at += sectorBytes)
    if (bytes.readUInt32LE(at) !== mark) return undefined;
  const content = plainAt(bytes, offset, headBytes + length).subarray(headBytes);
  return checksumOf(content, chain) === checksum ? { content, checksum, end } : undefined;
}

/**
 * Whether a power failure during the write of that batch may have left the bytes from `offset` on, where each
 * sector is either as written or still zeros. At least one sector of the batch is missing then, and nothing
 * follows it: a write begins only when the preceding one is on disk.
 */
export function isTorn(bytes: Buffer, offset: number, number: number): boolean {
  const used = usedBytes(bytes);
  const head = headAt(bytes, offset);
  const known = head?.end ?? endOf(offset, headBytes) - wordBytes;
  if (known > bytes.length || (head !== undefined && used > head.end)) return false;
  const mark = markOf(number);
  let isMissing = false;
  for (let at = offset; at < Math.max(known, used);) {
    const next = markAfter(at) + wordBytes;
    const isEmpty = isZero(bytes, at, next);
    if (isEmpty && at < known) isMissing = true;
    // In the last sector, the mark is at the end of the batch.
    if (!isEmpty && wordAt(bytes, Math.min(next, used) - wordBytes) !== mark) return false;
    at = next;
  }
  return isMissing;
}

/** The position from which on there are only zeros. */
export function usedBytes(bytes: Buffer): number {
  let end = bytes.length;
  for (const step of [1 << 16, sectorBytes, 1])
    while (end > 0 && isZero(bytes, Math.max(0, end - step), end)) end = Math.max(0, end - step);
  return end;
}

const zeros = Buffer.alloc(1 << 16);

/** At most as many bytes as `zeros` has. Bytes beyond the end of the file were never written. */
function isZero(bytes: Buffer, start: number, end: number): boolean {
  const stop = Math.min(end, bytes.length);
  return start >= stop || bytes.compare(zeros, 0, stop - start, start, stop) === 0;
}

function headAt(
  bytes: Buffer,
  offset: number,
): { length: number; checksum: number; end: number } | undefined {
  if (endOf(offset, headBytes) > bytes.length) return undefined;
  const head = plainAt(bytes, offset, headBytes);
  if (head.readUInt32LE(8) !== checksumOf(head.subarray(0, 8), 0)) return undefined;
  const length = wholeWords(head.readUInt32LE(0));
  return { length, checksum: head.readUInt32LE(4), end: endOf(offset, headBytes + length) };
}

/** The bytes from `offset` on, without the marks. */
function plainAt(bytes: Buffer, offset: number, length: number): Buffer {
  if (offset + length <= markAfter(offset)) return bytes.subarray(offset, offset + length);
  const plain = Buffer.allocUnsafe(length);
  eachStretch(offset, length, (from, at, stretch) => bytes.copy(plain, from, at, at + stretch));
  return plain;
}

/**
 * The runs of bytes between marks: how much of `length` precedes each, its position in the file, its length.
 */
function eachStretch(
  offset: number,
  length: number,
  take: (from: number, at: number, length: number) => void,
): void {
  for (let from = 0, at = offset; from < length;) {
    const stretch = Math.min(length - from, markAfter(at) - at);
    take(from, at, stretch);
    from += stretch;
    at += stretch + wordBytes;
  }
}

/** The end of a batch of this many bytes, including its marks. */
function endOf(offset: number, length: number): number {
  const rest = length - (markAfter(offset) - offset);
  const marks = rest <= 0 ? 0 : Math.ceil(rest / roomInSector);
  return offset + length + (marks + 1) * wordBytes;
}

function wholeWords(length: number): number {
  return Math.ceil(length / wordBytes) * wordBytes;
}

/** The position of the mark in `offset`'s sector. */
function markAfter(offset: number): number {
  return offset - (offset % sectorBytes) + roomInSector;
}

function markOf(number: number): number {
  return (markBits | (number & numberBits)) >>> 0;
}

function wordAt(bytes: Buffer, offset: number): number | undefined {
  return offset >= 0 && offset + wordBytes <= bytes.length ? bytes.readUInt32LE(offset) : undefined;
}
