import type { ConfigChange, Entry, HardState } from "../raft/types.js";
import { damaged } from "./files.js";

/**
 * The journal's records, which make up batches. Each is a length of 4 bytes and a payload of that length; the
 * payload's first byte is its kind. Numbers are little-endian.
 */
const lengthBytes = 4;

const Kind = { hardState: 1, entry: 2, installed: 3, compacted: 4 } as const;
const changeKinds: readonly ConfigChange["kind"][] = ["add-voter", "add-learner", "promote", "remove"];

const indexOffset = 2;
const termOffset = 10;
const entryDataOffset = 18;
const changeBytes = 9;
/** Offset of the promise in a hard state. Hard states of earlier versions end before it. */
const promiseOffset = 25;

export type JournalRecord =
  | { readonly kind: "hard-state"; readonly hardState: HardState }
  /** Voids earlier entries from its index on (Raft 5.3). */
  | { readonly kind: "entry"; readonly entry: Entry }
  /**
   * A leader's snapshot has replaced the log: earlier entries are void, and it continues after this index.
   */
  | ({ readonly kind: "installed" } & LogPosition)
  /** This server's own snapshot covers everything up to here; later entries stay. */
  | ({ readonly kind: "compacted" } & LogPosition);

export interface LogPosition {
  readonly index: number;
  readonly term: number;
}

/** Appends a record to `parts`. */
export function writeRecord(parts: Uint8Array[], record: JournalRecord): void {
  const payload = payloadOf(record);
  const length = Buffer.allocUnsafe(lengthBytes);
  length.writeUInt32LE(
    payload.reduce((sum, part) => sum + part.length, 0),
    0,
  );
  parts.push(length);
  for (const part of payload) parts.push(part);
}

/**
 * @param content a remainder too short for a length is padding
 * @throws LeaseholdError `LOG_CORRUPT`
 */
export function* recordsOf(content: Buffer): Generator<JournalRecord> {
  for (let at = 0; content.length - at >= lengthBytes;) {
    const start = at + lengthBytes;
    const end = start + content.readUInt32LE(at);
    if (end > content.length) throw damaged("a record of the journal is longer than its batch");
    yield parsePayload(content.subarray(start, end));
    at = end;
  }
}

function payloadOf(record: JournalRecord): Uint8Array[] {
  if (record.kind === "entry") return entryPayload(record.entry);
  if (record.kind === "hard-state") {
    const { term, votedFor, commit, promisedMs } = record.hardState;
    const bytes = Buffer.alloc(promisedMs === undefined ? promiseOffset : promiseOffset + 8);
    bytes.writeUInt8(Kind.hardState, 0);
    bytes.writeDoubleLE(term, 1);
    bytes.writeBigUInt64LE(votedFor, 9);
    bytes.writeDoubleLE(commit, 17);
    if (promisedMs !== undefined) bytes.writeDoubleLE(promisedMs, promiseOffset);
    return [bytes];
  }
  const bytes = Buffer.alloc(17);
  bytes.writeUInt8(Kind[record.kind], 0);
  bytes.writeDoubleLE(record.index, 1);
  bytes.writeDoubleLE(record.term, 9);
  return [bytes];
}

/** Serializes an entry, for the journal and for other servers. The data itself is not copied. */
export function entryPayload(entry: Entry): Uint8Array[] {
  const isChange = entry.kind === "config";
  const bytes = Buffer.alloc(entryDataOffset + (isChange ? changeBytes : 0));
  bytes.writeUInt8(Kind.entry, 0);
  bytes.writeUInt8(isChange ? 1 : 0, 1);
  bytes.writeDoubleLE(entry.index, indexOffset);
  bytes.writeDoubleLE(entry.term, termOffset);
  if (isChange) {
    bytes.writeUInt8(changeKinds.indexOf(entry.change.kind), entryDataOffset);
    bytes.writeBigUInt64LE(entry.change.member, entryDataOffset + 1);
  }
  return [bytes, entry.data];
}

/**
 * @throws LeaseholdError `LOG_CORRUPT` for an unknown format: the checksum was right, so another version
 *   wrote it
 */
export function parsePayload(payload: Buffer): JournalRecord {
  try {
    switch (payload.readUInt8(0)) {
      case Kind.hardState:
        return {
          kind: "hard-state",
          hardState: {
            term: payload.readDoubleLE(1),
            votedFor: payload.readBigUInt64LE(9),
            commit: payload.readDoubleLE(17),
            promisedMs: payload.length > promiseOffset ? payload.readDoubleLE(promiseOffset) : undefined,
          },
        };
      case Kind.installed:
      case Kind.compacted:
        return {
          kind: payload[0] === Kind.installed ? "installed" : "compacted",
          index: payload.readDoubleLE(1),
          term: payload.readDoubleLE(9),
        };
      case Kind.entry:
        return { kind: "entry", entry: parseEntry(payload) };
      default:
    }
  } catch (error) {
    throw damaged("a record of the journal is too short for its kind", { cause: error });
  }
  throw damaged(`the journal has a record of the unknown kind ${payload[0]}`);
}

/** @throws RangeError if the payload is too short, or has a change of an unknown kind */
export function parseEntry(payload: Buffer): Entry {
  const index = payload.readDoubleLE(indexOffset);
  const term = payload.readDoubleLE(termOffset);
  // A copy: a view would retain the whole segment.
  if (payload.readUInt8(1) === 0)
    return { kind: "normal", index, term, data: new Uint8Array(payload.subarray(entryDataOffset)) };
  const kind = changeKinds[payload.readUInt8(entryDataOffset)];
  if (kind === undefined) throw new RangeError("unknown change");
  const change = { kind, member: payload.readBigUInt64LE(entryDataOffset + 1) };
  const data = new Uint8Array(payload.subarray(entryDataOffset + changeBytes));
  return { kind: "config", index, term, change, data };
}
