import { create } from "@bufbuild/protobuf";
import { type KeyValue, KeyValueSchema } from "leasehold/etcd/gen/etcd/kv_pb.js";
import { bytesOf } from "./keys.js";
import type { Version } from "./revisions.js";
import { bytesOfValue } from "./values.js";
import { fieldLength, int64Length, varintLength, WireWriter } from "./wire-writer.js";

/** A version as clients see it. */
export function toKeyValue(version: Version, keysOnly = false): KeyValue {
  return create(KeyValueSchema, {
    key: bytesOf(version.key),
    value: keysOnly ? new Uint8Array() : bytesOfValue(version.value),
    createRevision: BigInt(version.created),
    modRevision: BigInt(version.modified),
    version: BigInt(version.version),
    lease: version.lease,
  });
}

const { createRevision, key, lease, modRevision, value, version } = KeyValueSchema.field;

/** Encoded length of the message that `toKeyValue` makes. */
export function keyValueLength(of: Version, keysOnly: boolean): number {
  const numbers = numberLength(of.created) + numberLength(of.modified) + numberLength(of.version);
  const bytes = fieldLength(of.key.length) + (hasValue(of, keysOnly) ? fieldLength(of.value.length) : 0);
  return bytes + numbers + (of.lease === 0n ? 0 : 1 + int64Length(of.lease));
}

/** Default values are not written. */
function numberLength(number: number): number {
  return number === 0 ? 0 : 1 + varintLength(number);
}

function hasValue(of: Version, keysOnly: boolean): boolean {
  return !keysOnly && of.value.length > 0;
}

/** Longer values are not copied into a larger buffer. */
const copiedBytesMax = 4 * 1024;

/**
 * Encodes versions as messages in a field of another message, in parts. A long value is a separate part, and
 * is not copied.
 */
export function* encodedKeyValues(
  field: number,
  versions: readonly Version[],
  keysOnly: boolean,
): Generator<Uint8Array> {
  let length = 0;
  for (const each of versions) {
    length += fieldLength(keyValueLength(each, keysOnly));
    if (isApart(each, keysOnly)) length -= each.value.length;
  }
  const writer = new WireWriter(length);
  writer.begin(length);
  for (const each of versions) {
    writer.lengthOf(field, keyValueLength(each, keysOnly));
    writeUpToValue(writer, each);
    if (isApart(each, keysOnly)) {
      writer.lengthOf(value.number, each.value.length);
      yield writer.end();
      yield each.value;
      writer.begin(0);
    } else if (hasValue(each, keysOnly)) writer.field(value.number, each.value);
    if (each.lease !== 0n) writer.int64(lease.number, each.lease);
  }
  yield writer.end();
}

function isApart(of: Version, keysOnly: boolean): of is Version & { readonly value: Uint8Array } {
  return !keysOnly && of.value instanceof Uint8Array && of.value.length > copiedBytesMax;
}

function writeUpToValue(writer: WireWriter, of: Version): void {
  writer.field(key.number, of.key);
  if (of.created !== 0) writer.number(createRevision.number, of.created);
  if (of.modified !== 0) writer.number(modRevision.number, of.modified);
  if (of.version !== 0) writer.number(version.number, of.version);
}
