import { LeaseholdError } from "leasehold/common";

/** A block's position, tag and checksum. */
export interface Placed {
  readonly index: number;
  readonly tag: string;
  /** In allocation units of the data file or, for a small block, the number of its slot. */
  readonly start: number;
  readonly bytes: number;
  /** Computed over content, file, index and tag. */
  readonly checksum: number;
  /** The block is among the small blocks of all files, not in its file's own data file. */
  readonly isSmall: boolean;
}

/** A record of a node's index. The last record about a file or block counts. */
export type IndexRecord =
  | { readonly kind: "node"; readonly record: string }
  /** A file and the number of its data file. */
  | { readonly kind: "file"; readonly id: number; readonly path: string; readonly meta: string }
  | { readonly kind: "blocks"; readonly id: number; readonly placed: readonly Placed[] }
  /** A small block with its bytes, because after a crash its slot may not have them. */
  | { readonly kind: "small"; readonly id: number; readonly placed: Placed; readonly content: Uint8Array }
  | { readonly kind: "removed"; readonly id: number; readonly indices: readonly number[] }
  /** The file was removed with its blocks. */
  | { readonly kind: "gone"; readonly id: number };

/** Blocks in one record, which becomes durable completely or not at all. */
export const blocksPerRecord = 512;

/**
 * The first byte of a record with content. The length of the record's JSON, the JSON and the content follow.
 */
const withContent = 1;
const headBytes = 3;
/** The first byte of all other records: `[`. */
const jsonStart = 0x5b;

export function encodeRecord(record: IndexRecord): Uint8Array {
  if (record.kind !== "small") return Buffer.from(JSON.stringify(fieldsOf(record)), "utf8");
  const { id, placed, content } = record;
  const { index, tag, start, checksum } = placed;
  const json = Buffer.from(JSON.stringify([id, index, tag, start, checksum]), "utf8");
  const bytes = Buffer.allocUnsafe(headBytes + json.length + content.length);
  bytes[0] = withContent;
  bytes.writeUInt16LE(json.length, 1);
  bytes.set(json, headBytes);
  bytes.set(content, headBytes + json.length);
  return bytes;
}

function fieldsOf(record: Exclude<IndexRecord, { kind: "small" }>): unknown[] {
  switch (record.kind) {
    case "node":
      return ["n", record.record];
    case "file":
      return ["f", record.id, record.path, record.meta];
    case "blocks":
      return [
        "b",
        record.id,
        record.placed.map(({ index, tag, start, bytes, checksum, isSmall }) =>
          isSmall ? [index, tag, start, bytes, checksum, 1] : [index, tag, start, bytes, checksum],
        ),
      ];
    case "removed":
      return ["r", record.id, record.indices];
    case "gone":
      return ["g", record.id];
  }
}

type Fields =
  | ["n", string]
  | ["f", number, string, string]
  | ["b", number, [number, string, number, number, number, 1?][]]
  | ["r", number, number[]]
  | ["g", number];

/**
 * Decodes a payload that the log's checksum has verified.
 *
 * @throws LeaseholdError `VERSION_MISMATCH`
 */
export function decodeRecord(payload: Buffer): IndexRecord {
  if (payload[0] === withContent) return decodeSmall(payload);
  if (payload[0] !== jsonStart) throw ofAnotherVersion();
  const fields = JSON.parse(payload.toString("utf8")) as Fields;
  switch (fields[0]) {
    case "n":
      return { kind: "node", record: fields[1] };
    case "f":
      return { kind: "file", id: fields[1], path: fields[2], meta: fields[3] };
    case "b":
      return {
        kind: "blocks",
        id: fields[1],
        placed: fields[2].map(([index, tag, start, bytes, checksum, isSmall]) => ({
          index,
          tag,
          start,
          bytes,
          checksum,
          isSmall: isSmall === 1,
        })),
      };
    case "r":
      return { kind: "removed", id: fields[1], indices: fields[2] };
    case "g":
      return { kind: "gone", id: fields[1] };
    default:
      throw ofAnotherVersion();
  }
}

function ofAnotherVersion(): LeaseholdError {
  return new LeaseholdError("VERSION_MISMATCH", "the index is of another version of Leasehold");
}

function decodeSmall(payload: Buffer): IndexRecord {
  const jsonEnd = headBytes + payload.readUInt16LE(1);
  const content = payload.subarray(jsonEnd);
  const [id, index, tag, start, checksum] = JSON.parse(payload.toString("utf8", headBytes, jsonEnd)) as [
    number,
    number,
    string,
    number,
    number,
  ];
  const placed = { index, tag, start, bytes: content.length, checksum, isSmall: true };
  return { kind: "small", id, placed, content };
}
