import { LeaseholdError } from "leasehold/common";

/** Where a block stands, and what it must be when it is read. */
export interface Placed {
  readonly index: number;
  readonly tag: string;
  /** In units of the data file. */
  readonly start: number;
  readonly bytes: number;
  /** Of the content, the file, the index and the tag. */
  readonly checksum: number;
}

/** What the index of a node consists of: the last word on each thing counts. */
export type IndexRecord =
  | { readonly kind: "node"; readonly record: string }
  /** A file with the number that its data file has. */
  | { readonly kind: "file"; readonly id: number; readonly path: string; readonly meta: string }
  | { readonly kind: "blocks"; readonly id: number; readonly placed: readonly Placed[] }
  | { readonly kind: "removed"; readonly id: number; readonly indices: readonly number[] };

/** Blocks in one record; of a record nothing is durable or all. */
export const blocksPerRecord = 512;

/** JSON: none of its bytes are zero, so a sector that was never written is told from a record. */
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
  }
}

type Fields =
  | ["n", string]
  | ["f", number, string, string]
  | ["b", number, [number, string, number, number, number][]]
  | ["r", number, number[]];

/** What the checksum of its log has found to be as it was written. */
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
    default:
      throw new LeaseholdError("VERSION_MISMATCH", "the index is of another version of Leasehold");
  }
}
