import { WireType } from "@bufbuild/protobuf/wire";
import { type Key, keyOf } from "./keys.js";
import type { Version } from "./revisions.js";
import { keep, nothing, type Value } from "./values.js";
import { WireReader } from "./wire-reader.js";
import { fieldLength, int64Length, varintLength, WireWriter } from "./wire-writer.js";

/**
 * Nearly all pieces of a snapshot are versions of one key. The generated code makes a message of each before
 * writing or after reading, and takes several times as long as the code here. The bytes are the same.
 */

/** Fields of a snapshot piece. */
const fields = { history: 3, continued: 5 } as const;
/** Fields of a key's versions. */
const keyField = 1;
const versionsField = 2;
/** Field of a version's value; its numbers are 1 to 4. */
const valueField = 5;
const leaseField = 6;

export type HistoryCase = keyof typeof fields;

export interface HistoryPiece {
  readonly case: HistoryCase;
  readonly key: Key;
  readonly versions: readonly Version[];
}

/** A writer for all pieces of a snapshot, which share a few large arrays. */
export class HistoryWriter {
  readonly #writer = new WireWriter();

  write(body: HistoryCase, key: Key, versions: readonly Version[]): Uint8Array {
    let length = key === "" ? 0 : fieldLength(key.length);
    for (const version of versions) length += fieldLength(lengthOf(version));
    const writer = this.#writer;
    writer.begin(fieldLength(length));
    writer.lengthOf(fields[body], length);
    if (key !== "") writer.field(keyField, key);
    for (const version of versions) {
      writer.lengthOf(versionsField, lengthOf(version));
      this.#version(version);
    }
    return writer.end();
  }

  #version({ created, lease, modified, sub, value, version }: Version): void {
    const writer = this.#writer;
    if (modified !== 0) writer.number(1, modified);
    if (sub !== 0) writer.number(2, sub);
    if (created !== 0) writer.number(3, created);
    if (version !== 0) writer.number(4, version);
    if (value.length > 0) writer.field(valueField, value);
    if (lease !== 0n) writer.int64(leaseField, lease);
  }
}

function lengthOf({ created, lease, modified, sub, value, version }: Version): number {
  let length = value.length > 0 ? fieldLength(value.length) : 0;
  if (modified !== 0) length += 1 + varintLength(modified);
  if (sub !== 0) length += 1 + varintLength(sub);
  if (created !== 0) length += 1 + varintLength(created);
  if (version !== 0) length += 1 + varintLength(version);
  return lease === 0n ? length : length + 1 + int64Length(lease);
}

/**
 * Returns undefined for a piece of another kind. Keeps no view of the bytes, except of a long value that is
 * most of them.
 *
 * @throws Error for an invalid message
 */
export function readHistory(bytes: Uint8Array): HistoryPiece | undefined {
  const reader = new WireReader(bytes);
  const tag = reader.tag();
  const field = tag >>> 3;
  if (field !== fields.history && field !== fields.continued) return undefined;
  if (reader.lengthOf(tag) + reader.at !== bytes.length)
    throw new Error("something follows the versions of a key");
  // An empty key is not encoded.
  let key = "";
  const versions: Version[] = [];
  while (reader.at < bytes.length) {
    const inner = reader.tag();
    if (inner >>> 3 === keyField) key = keyOf(reader.bytesOf(inner));
    else if (inner >>> 3 === versionsField) versions.push(readVersion(reader, reader.lengthOf(inner), key));
    // A field of a later version: skipped, as in the generated reader, which is the reference.
    else reader.skip(inner);
  }
  return { case: field === fields.history ? "history" : "continued", key, versions };
}

function readVersion(reader: WireReader, length: number, key: Key): Version {
  const end = reader.at + length;
  let [modified, sub, created, version] = [0, 0, 0, 0];
  let value: Value = nothing;
  let lease = 0n;
  while (reader.at < end) {
    const tag = reader.tag();
    const field = tag >>> 3;
    if (field === valueField) value = keep(reader.bytesOf(tag));
    // Also a field of a later version.
    else if (field > valueField && field !== leaseField) reader.skip(tag);
    else if ((tag & 7) !== WireType.Varint) throw new Error("a number is of another type");
    else if (field === 1) modified = reader.number();
    else if (field === 2) sub = reader.number();
    else if (field === 3) created = reader.number();
    else if (field === 4) version = reader.number();
    else lease = reader.int64();
  }
  if (reader.at !== end) throw new Error("a version is longer than it says");
  return { key, modified, sub, created, version, value, lease };
}
