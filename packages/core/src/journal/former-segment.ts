import { basename } from "node:path";
import { usedBytes } from "leasehold/journal";
import { checksumOf } from "leasehold/journal";
import { damaged } from "./files.js";
import { type JournalRecord, parsePayload } from "./records.js";

const headerBytes = 16;

/** `length`, `checksum` and the head's own checksum, 4 bytes each, precede each payload. */
const recordHeadBytes = 12;

/**
 * Reads a segment of the former format, which is no longer written. In that format a write cut off by a crash
 * looks like damage, so both are refused.
 *
 * @returns the checksum to continue from
 * @throws LeaseholdError `LOG_CORRUPT`
 */
export function readFormerSegment(
  path: string,
  bytes: Buffer,
  chain: number,
  take: (record: JournalRecord) => void,
): number {
  const used = usedBytes(bytes);
  let checksum = chain;
  let offset = headerBytes;
  // A record may end with zeros.
  while (offset < used) {
    const head = bytes.subarray(offset, offset + recordHeadBytes);
    const isHead =
      head.length === recordHeadBytes && head.readUInt32LE(8) === checksumOf(head.subarray(0, 8), 0);
    const start = offset + recordHeadBytes;
    const end = isHead ? start + head.readUInt32LE(0) : Infinity;
    checksum = end > bytes.length ? NaN : checksumOf(bytes.subarray(start, end), checksum);
    if (checksum !== head.readUInt32LE(4)) throw refused(path, offset);
    take(parsePayload(bytes.subarray(start, end)));
    offset = end;
  }
  return checksum;
}

function refused(path: string, offset: number): Error {
  return damaged(
    `${basename(path)} is damaged at byte ${offset}, or a crash has cut a write off there: start the server ` +
      "once with the version of Leasehold that wrote it, and stop it; if that refuses it too, replace this server",
  );
}
