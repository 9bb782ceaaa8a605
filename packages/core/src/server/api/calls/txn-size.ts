import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { RequestOpSchema, TxnRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { nestingMax, operationsMost } from "../../../state/check.js";

/** Comparisons, and operations of both ways, of all levels: what `checkTxn` may take is within it. */
export const partsMax = 3 * operationsMost;

const { compare, success, failure } = TxnRequestSchema.field;
const { requestTxn } = RequestOpSchema.field;
const partNumbers = new Set([compare.number, success.number, failure.number]);

/** A transaction that is still to be looked at: from where to where in the bytes, and how deep it stands. */
interface Found {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/**
 * Whether a transaction has more parts, or is deeper, than any that is taken: seen from its bytes, as to
 * decode a million operations is work already.
 *
 * @throws RangeError if it is no message: what ends after the message that it is in could be gone through
 * once for each of them
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

/** The messages in these fields of a message. */
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
