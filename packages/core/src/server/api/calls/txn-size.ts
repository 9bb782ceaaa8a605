import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { RequestOpSchema, TxnRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { nestingMax, operationsMost } from "../../../state/check.js";

/**
 * Bound of comparisons and operations of both branches, on all levels. Covers everything that `checkTxn`
 * accepts.
 */
export const partsMax = 3 * operationsMost;

const { compare, success, failure } = TxnRequestSchema.field;
const { requestTxn } = RequestOpSchema.field;
const partNumbers = new Set([compare.number, success.number, failure.number]);

/** A transaction to visit: its byte range, and its depth. */
interface Found {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/**
 * Whether a transaction exceeds every bound on parts or depth, judged by its bytes, since decoding a million
 * operations is expensive.
 *
 * @throws RangeError for an invalid message: one that exceeds its parent could otherwise be visited many
 *   times
 */
export function isOversized(bytes: Uint8Array): boolean {
  const reader = new BinaryReader(bytes);
  const open: Found[] = [{ start: 0, end: bytes.length, depth: 0 }];
  let parts = 0;
  for (let txn = open.pop(); txn !== undefined; txn = open.pop()) {
    for (const part of fields(reader, txn.start, txn.end, partNumbers)) {
      parts += 1;
      if (parts > partsMax || txn.depth > nestingMax) return true;
      if (part.number === compare.number) continue;
      for (const { start, end } of fields(reader, part.start, part.end, txnNumber))
        open.push({ start, end, depth: txn.depth + 1 });
    }
  }
  return false;
}

const txnNumber = new Set([requestTxn.number]);

/** Yields the messages in these fields of a message. */
function fields(
  reader: BinaryReader,
  start: number,
  end: number,
  wanted: ReadonlySet<number>,
): { number: number; start: number; end: number }[] {
  const found: { number: number; start: number; end: number }[] = [];
  reader.pos = start;
  while (reader.pos < end && found.length <= partsMax) {
    const [number, type] = reader.tag();
    if (type !== WireType.LengthDelimited || !wanted.has(number)) {
      reader.skip(type, number);
      continue;
    }
    const length = reader.uint32();
    const partEnd = reader.pos + length;
    if (partEnd > end) throw new RangeError("a part of the message ends after it");
    found.push({ number, start: reader.pos, end: partEnd });
    reader.pos = partEnd;
  }
  return found;
}
