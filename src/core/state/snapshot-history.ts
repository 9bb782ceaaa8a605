import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { bytesOf, type Key, keyOf } from "./keys.js";
import type { Version } from "./revisions.js";
import { bytesOfValue, keep, nothing, type Value } from "./values.js";

/**
 * Pieces with versions of one key are nearly all that a snapshot has. The generated code makes a message of
 * each before it writes or after it reads it, and takes several times as long as this. The bytes are the same.
 */

/** Of a piece of a snapshot. */
const fields = { history: 3, continued: 5 } as const;
/** Of the versions of a key. */
const keyField = 1;
const versionsField = 2;
/** Of one version. */
const numbers = ["modified", "sub", "created", "version"] as const;
const valueField = 5;
const leaseField = 6;

export type HistoryCase = keyof typeof fields;

export interface HistoryPiece {
  readonly case: HistoryCase;
  readonly key: Key;
  readonly versions: readonly Version[];
}

/** One for all pieces of a snapshot, as its buffer grows but once. */
export class HistoryWriter {
  readonly #writer = new BinaryWriter();

  write(body: HistoryCase, key: Key, versions: readonly Version[]): Uint8Array {
    const writer = this.#writer.tag(fields[body], WireType.LengthDelimited).fork();
    if (key !== "") writer.tag(keyField, WireType.LengthDelimited).bytes(bytesOf(key));
    for (const version of versions) {
      writer.tag(versionsField, WireType.LengthDelimited).fork();
      this.#version(version);
      writer.join();
    }
    return writer.join().finish();
  }

  #version(version: Version): void {
    const writer = this.#writer;
    for (let index = 0; index < numbers.length; index += 1) {
      const number = version[numbers[index]!];
      if (number === 0) continue;
      writer.tag(index + 1, WireType.Varint);
      // The same bytes, by a shorter way.
      if (number < 2 ** 31) writer.uint32(number);
      else writer.int64(number);
    }
    if (version.value.length > 0)
      writer.tag(valueField, WireType.LengthDelimited).bytes(bytesOfValue(version.value));
    if (version.lease !== 0n) writer.tag(leaseField, WireType.Varint).int64(version.lease);
  }
}

/**
 * Undefined for a piece of another kind.
 *
 * @throws Error for bytes that are no such message
 */
export function readHistory(bytes: Uint8Array): HistoryPiece | undefined {
  const reader = new BinaryReader(bytes);
  const [field, wireType] = reader.tag();
  if (field !== fields.history && field !== fields.continued) return undefined;
  if (wireType !== WireType.LengthDelimited || reader.uint32() + reader.pos !== bytes.length)
    throw new Error("something follows the versions of a key");
  // Of a key without bytes, nothing is written.
  let key = "";
  const versions: Version[] = [];
  while (reader.pos < bytes.length) {
    const [inner, type] = reader.tag();
    if (inner === keyField) key = keyOf(reader.bytes());
    else if (inner === versionsField) versions.push(readVersion(reader, key));
    else reader.skip(type);
  }
  return { case: field === fields.history ? "history" : "continued", key, versions };
}

function readVersion(reader: BinaryReader, key: Key): Version {
  const end = reader.uint32() + reader.pos;
  const found = { modified: 0, sub: 0, created: 0, version: 0 };
  let value: Value = nothing;
  let lease = 0n;
  while (reader.pos < end) {
    const [field, type] = reader.tag();
    const number = numbers[field - 1];
    if (number !== undefined) found[number] = Number(reader.int64());
    else if (field === valueField) value = keep(reader.bytes());
    else if (field === leaseField) lease = BigInt(reader.int64());
    else reader.skip(type);
  }
  if (reader.pos !== end) throw new Error("a version is longer than it says");
  const { modified, sub, created, version } = found;
  return { key, modified, sub, created, version, value, lease };
}
