import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { bytesOf, keyOf } from "../../state/keys.js";
import { isDeletion, type Version } from "../../state/revisions.js";
import { bytesOfValue, keep, nothing, type Value } from "../../state/values.js";

/** Keys and values of etcd's buckets, as bytes. Numbers in keys are big-endian, so that keys sort by them. */

/** Length of a revision as a key: `main`, an underscore, `sub`. */
export const revisionBytes = 17;
const underscore = 0x5f;
const tombstone = 0x74;

export function revisionOf(main: number, sub: number, isTombstone = false): Buffer {
  const bytes = Buffer.alloc(isTombstone ? revisionBytes + 1 : revisionBytes);
  writeCount(bytes, main, 0);
  bytes[8] = underscore;
  writeCount(bytes, sub, 9);
  if (isTombstone) bytes[revisionBytes] = tombstone;
  return bytes;
}

/** Writes 8 bytes without a bigint, which would be an object. */
function writeCount(bytes: Buffer, count: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(count / 2 ** 32), at);
  bytes.writeUInt32BE(count % 2 ** 32, at + 4);
}

function readCount(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}

export interface Revision {
  readonly main: number;
  readonly sub: number;
  readonly isTombstone: boolean;
}

/** Beyond this, later changes could run out of exact numbers, which end at 2^53. */
export const revisionMax = 2 ** 52;

/** Returns undefined for bytes that are not a revision. */
export function readRevision(bytes: Buffer): Revision | undefined {
  if (bytes.length < revisionBytes || bytes.length > revisionBytes + 1 || bytes[8] !== underscore)
    return undefined;
  const isTombstone = bytes.length > revisionBytes;
  if (isTombstone && bytes[revisionBytes] !== tombstone) return undefined;
  const [main, sub] = [readCount(bytes, 0), readCount(bytes, 9)];
  return main <= revisionMax && sub <= revisionMax ? { main, sub, isTombstone } : undefined;
}

/** Fields of etcd's message for a key with its value. */
const keyField = 1;
const firstNumber = 2;
const numbers = ["created", "modified", "version"] as const;
const valueField = 5;
const leaseField = 6;

/** Length of the result of `keyValueBytes`. */
export function keyValueSize(version: Version): number {
  const { created, key, lease, modified, value } = version;
  const inField = (bytes: number) => (bytes === 0 ? 0 : 1 + varintSize(bytes) + bytes);
  if (isDeletion(version)) return inField(key.length);
  const counts = 3 + varintSize(created) + varintSize(modified) + varintSize(version.version);
  const ofLease = lease === 0n ? 0 : 1 + varintSizeOf(BigInt.asUintN(64, lease));
  return inField(key.length) + counts + inField(value.length) + ofLease;
}

function varintSize(number: number): number {
  let size = 1;
  for (let rest = number; rest >= 128; rest /= 128) size += 1;
  return size;
}

function varintSizeOf(number: bigint): number {
  return Math.max(1, Math.ceil(number.toString(2).length / 7));
}

/** Shared, since creating a writer takes longer than using it. */
const writer = new BinaryWriter();

/** A deletion has only the key. */
export function keyValueBytes(version: Version): Uint8Array {
  writeBytes(keyField, bytesOf(version.key));
  if (isDeletion(version)) return writer.finish();
  for (let field = 0; field < numbers.length; field += 1) {
    const number = version[numbers[field]!];
    writer.tag(firstNumber + field, WireType.Varint);
    // Writes the same bytes, but faster.
    if (number < 2 ** 31) writer.uint32(number);
    else writer.int64(number);
  }
  writeBytes(valueField, bytesOfValue(version.value));
  if (version.lease !== 0n) writer.tag(leaseField, WireType.Varint).int64(version.lease);
  return writer.finish();
}

function writeBytes(field: number, bytes: Uint8Array): void {
  if (bytes.length > 0) writer.tag(field, WireType.LengthDelimited).bytes(bytes);
}

/**
 * Decodes the change of a key at this revision.
 *
 * @throws Error for invalid bytes
 */
export function readVersion({ isTombstone, main, sub }: Revision, bytes: Uint8Array): Version {
  const reader = new BinaryReader(bytes);
  const found = { created: 0, modified: 0, version: 0 };
  let key = "";
  let value: Value = nothing;
  let lease = 0n;
  while (reader.pos < bytes.length) {
    const [field, type] = reader.tag();
    const name = numbers[field - firstNumber];
    if (name !== undefined) found[name] = readNumber(reader, bytes);
    else if (field === keyField) key = keyOf(reader.bytes());
    else if (field === valueField) value = keep(reader.bytes());
    else if (field === leaseField) lease = BigInt(reader.int64());
    // A field of a later etcd version: skipped, as protobuf readers do.
    else reader.skip(type);
  }
  if (key === "") throw new Error("it has no key");
  const { created, modified, version } = found;
  const place = { key, modified: main, sub };
  if (isTombstone) return { ...place, created: 0, version: 0, value: nothing, lease: 0n };
  if (modified !== main || created < 1 || created > main || version < 1 || version > main)
    throw new Error(`the revisions of a key at revision ${main} do not fit`);
  return { ...place, created, version, value, lease };
}

/** Faster than a bigint. A number too large to be exact is too large for a revision. */
function readNumber(reader: BinaryReader, bytes: Uint8Array): number {
  let number = 0;
  for (let factor = 1; factor < 2 ** 64; factor *= 128) {
    const byte = bytes[reader.pos];
    reader.pos += 1;
    if (byte === undefined) break;
    number += (byte & 0x7f) * factor;
    if (byte < 128) return number;
  }
  throw new Error("a number has no end");
}

export function idBytes(id: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, id));
  return bytes;
}

export interface LeaseRecord {
  readonly id: bigint;
  /** Seconds. */
  readonly ttl: bigint;
}

/** Encodes a lease as etcd does. */
export function leaseBytes(record: LeaseRecord): Uint8Array {
  if (record.id !== 0n) writer.tag(1, WireType.Varint).int64(record.id);
  if (record.ttl !== 0n) writer.tag(2, WireType.Varint).int64(record.ttl);
  return writer.finish();
}

/** @throws Error for invalid bytes */
export function readLease(bytes: Uint8Array): LeaseRecord {
  const reader = new BinaryReader(bytes);
  const record = { id: 0n, ttl: 0n };
  while (reader.pos < bytes.length) {
    const [field, type] = reader.tag();
    if (field === 1) record.id = BigInt(reader.int64());
    else if (field === 2) record.ttl = BigInt(reader.int64());
    // The remaining time: a restored lease starts again with its full time.
    else reader.skip(type);
  }
  return record;
}

/**
 * Number of fields in a message, which may take a hundred times its encoded size in memory.
 *
 * @param max counting stops at this number
 * @throws Error for invalid bytes
 */
export function fieldsOf(bytes: Uint8Array, max: number): number {
  const reader = new BinaryReader(bytes);
  let count = 0;
  for (; reader.pos < bytes.length && count <= max; count += 1) {
    const [, type] = reader.tag();
    reader.skip(type);
  }
  return count;
}
