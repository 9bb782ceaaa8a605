import { LeaseholdError } from "leasehold/common";

/** A block's position, tag and checksum. */
export interface Placed {
  readonly index: number;
  readonly tag: string;
  /** In units of the data file. */
  readonly start: number;
  readonly bytes: number;
  /** Over the content, the file, the index and the tag. */
  readonly checksum: number;
}

/** A record of a node's index: the last record about a file or block counts. */
export type IndexRecord =
  | { readonly kind: "node"; readonly record: string }
  /** A file and the number of its data file. */
  | { readonly kind: "file"; readonly id: number; readonly path: string; readonly meta: string }
  | { readonly kind: "blocks"; readonly id: number; readonly placed: readonly Placed[] }
  | { readonly kind: "removed"; readonly id: number; readonly indices: readonly number[] }
  /** The file was removed with its blocks. */
  | { readonly kind: "gone"; readonly id: number };

/** Blocks in one record, which is durable as a whole or not at all. */
export const blocksPerRecord = 512;

/** JSON has no zero bytes, so an unwritten sector differs from a record. */
export function encodeRecord(record: IndexRecord): Uint8Array {
  return Buffer.from(JSON.stringify(fieldsOf(record)), "utf8");
}

function fieldsOf(record: IndexRecord): unknown[] {
  switch (record.kind) {
    case "node":
      return ["n", record.record];
    case "file":
      return ["f", record.id, record.path, record.meta];
    case "blocks":
      return [
        "b",
        record.id,
        record.placed.map(({ index, tag, start, bytes, checksum }) => [index, tag, start, bytes, checksum]),
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
  | ["b", number, [number, string, number, number, number][]]
  | ["r", number, number[]]
  | ["g", number];

/** Decodes a payload that the log's checksum has verified. */
export function decodeRecord(payload: Buffer): IndexRecord {
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
        placed: fields[2].map(([index, tag, start, bytes, checksum]) => ({
          index,
          tag,
          start,
          bytes,
          checksum,
        })),
      };
    case "r":
      return { kind: "removed", id: fields[1], indices: fields[2] };
    case "g":
      return { kind: "gone", id: fields[1] };
    default:
      throw new LeaseholdError("VERSION_MISMATCH", "the index is of another version of Leasehold");
  }
}
