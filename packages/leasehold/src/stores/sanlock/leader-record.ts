import { crc32cUpdate } from "../../delta/record/crc32c.js";
import type { DeltaRecord } from "../../delta/record/record.js";
import { LeaseholdError } from "../../lease/errors.js";

/**
 * sanlock's delta lease: the first 200 bytes of a sector, little-endian, then 56 bytes that it leaves zero,
 * which Leasehold uses for what sanlock has no field for, then the bitmap of its messages.
 */
const magic = 0x1221_2010;
const versionMajor = 3;
const checksummedBytes = 168;
const checksumSeed = 0xffff_fffe;
const nameBytes = 48;
const offset = {
  magic: 0,
  version: 4,
  sectorBytes: 12,
  ownerId: 32,
  generation: 40,
  space: 56,
  resource: 104,
  timestamp: 152,
  checksum: 168,
  ioTimeout: 174,
  extraChecksum: 200,
  nonce: 204,
  number: 212,
  leaseMs: 224,
  delayMs: 228,
  writerRest: 232,
  end: 256,
} as const;

/**
 * sanlock considers a host dead when it has not renewed for this many of its io_timeouts, and a watchdog has
 * had this time, s.
 */
const renewalTimeouts = 8;
const watchdogSeconds = 60;

/** Orders sanlock's own records with Leasehold's: by generation, then by time. */
const bitsPerGeneration = 40n;

/** Room for any generation in front of these bits. */
const numberBits = 96n;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Refuses a sector that is not a delta lease of this lockspace. */
export function checkLeader(sector: Uint8Array, lockspace: string): void {
  const view = viewOf(sector);
  if (view.getUint32(offset.magic, true) !== magic) {
    throw new LeaseholdError("STORE_FOREIGN", "it has no delta lease of sanlock; run sanlock direct init");
  }
  const version = view.getUint32(offset.version, true);
  if (version >>> 16 !== versionMajor) {
    throw new LeaseholdError(
      "STORE_FOREIGN",
      `its format is version ${version >>> 16} of sanlock's, not ${versionMajor}`,
    );
  }
  if (view.getUint32(offset.checksum, true) !== checksumOf(sector)) {
    throw new LeaseholdError("STORE_CORRUPT", "the checksum of sanlock's record is wrong");
  }
  const found = textAt(sector, offset.space, nameBytes);
  if (found !== lockspace) {
    throw new LeaseholdError("STORE_FOREIGN", `it belongs to the lockspace ${JSON.stringify(found)}`);
  }
}

export function sectorBytesOf(sector: Uint8Array): number {
  return viewOf(sector).getUint32(offset.sectorBytes, true);
}

/**
 * The record in Leasehold's form; `undefined` if nobody has ever had the lease. Call {@link checkLeader}
 * first.
 */
export function decodeLeader(sector: Uint8Array, resource: string): DeltaRecord | undefined {
  const view = viewOf(sector);
  const epoch = view.getBigUint64(offset.generation, true);
  const timestamp = view.getBigUint64(offset.timestamp, true);
  const state = timestamp === 0n ? "free" : "held";
  const name = textAt(sector, offset.resource, nameBytes);
  if (isOurs(sector)) {
    if (view.getUint32(offset.extraChecksum, true) !== extraChecksumOf(sector)) {
      throw new LeaseholdError("STORE_CORRUPT", "the checksum of Leasehold's part of the record is wrong");
    }
    return {
      resource,
      epoch,
      state,
      number:
        (BigInt(view.getUint32(offset.number + 8, true)) << 64n) + view.getBigUint64(offset.number, true),
      writer: name + textAt(sector, offset.writerRest, offset.end - offset.writerRest),
      nonce: view.getFloat64(offset.nonce, true),
      leaseMs: view.getUint32(offset.leaseMs, true),
      delayMs: view.getUint32(offset.delayMs, true),
    };
  }
  if (epoch === 0n && state === "free") return undefined;
  const ioSeconds = view.getUint16(offset.ioTimeout, true);
  const time = state === "held" ? timestamp : (1n << bitsPerGeneration) - 1n;
  return {
    resource,
    epoch,
    state,
    number: (epoch << bitsPerGeneration) + time,
    writer: `sanlock:${name}`,
    nonce: Number(timestamp),
    leaseMs: 1_000 * (renewalTimeouts * ioSeconds + watchdogSeconds),
    delayMs: 1_000 * ioSeconds,
  };
}

/**
 * Writes the record into a sector that already has a delta lease. Its label does not fit and is left out.
 *
 * @throws LeaseholdError `STORE_FULL` for a writer's name or a number that is too long.
 */
export function encodeLeader(sector: Uint8Array, hostId: number, record: DeltaRecord): void {
  const writer = encoder.encode(record.writer);
  const room = nameBytes - 1 + offset.end - offset.writerRest;
  if (writer.length > room) {
    throw new LeaseholdError(
      "STORE_FULL",
      `sanlock's record has room for a holder of ${room} bytes, not ${writer.length}`,
    );
  }
  // Each half has to be valid text by itself: sanlock shows the first.
  if (writer.some((byte) => byte === 0 || byte > 0x7e)) {
    throw new LeaseholdError("UNSUPPORTED", "in sanlock's record a holder's name is plain ASCII");
  }
  if (record.number >> numberBits !== 0n || record.epoch >> 64n !== 0n) {
    throw new LeaseholdError("STORE_FULL", "sanlock's record has no room for a number of this size");
  }
  if (record.readers !== undefined || record.asked !== undefined) {
    throw new LeaseholdError("UNSUPPORTED", "sanlock's record has no room for readers and requests");
  }
  const view = viewOf(sector);
  sector.fill(0, offset.space + nameBytes);
  view.setBigUint64(offset.ownerId, BigInt(hostId), true);
  view.setBigUint64(offset.generation, record.epoch, true);
  sector.set(writer.subarray(0, nameBytes - 1), offset.resource);
  view.setBigUint64(offset.timestamp, record.state === "held" ? timestampOf(record.number) : 0n, true);
  view.setUint16(offset.ioTimeout, Math.max(1, Math.ceil(record.leaseMs / 1_000 / renewalTimeouts)), true);
  view.setFloat64(offset.nonce, record.nonce, true);
  view.setBigUint64(offset.number, record.number & 0xffff_ffff_ffff_ffffn, true);
  view.setUint32(offset.number + 8, Number(record.number >> 64n), true);
  view.setUint32(offset.leaseMs, Math.ceil(record.leaseMs), true);
  view.setUint32(offset.delayMs, Math.ceil(record.delayMs), true);
  sector.set(writer.subarray(nameBytes - 1), offset.writerRest);
  view.setUint32(offset.checksum, checksumOf(sector), true);
  view.setUint32(offset.extraChecksum, extraChecksumOf(sector), true);
}

/**
 * Never 0, which means free, and different in consecutive writes: sanlock detects by its change that a host
 * is alive.
 */
function timestampOf(number: bigint): bigint {
  return (number % 0xffff_ffffn) + 1n;
}

function isOurs(sector: Uint8Array): boolean {
  return sector.subarray(offset.extraChecksum, offset.end).some((byte) => byte !== 0);
}

function checksumOf(sector: Uint8Array): number {
  return crc32cUpdate(checksumSeed, sector.subarray(0, checksummedBytes));
}

/** Covers sanlock's checksum as well, so that it belongs to this record only. */
function extraChecksumOf(sector: Uint8Array): number {
  const state = crc32cUpdate(checksumSeed, sector.subarray(offset.checksum, offset.extraChecksum));
  return crc32cUpdate(state, sector.subarray(offset.nonce, offset.end));
}

function textAt(sector: Uint8Array, start: number, length: number): string {
  const bytes = sector.subarray(start, start + length);
  const end = bytes.indexOf(0);
  return decoder.decode(end === -1 ? bytes : bytes.subarray(0, end));
}

function viewOf(sector: Uint8Array): DataView {
  return new DataView(sector.buffer, sector.byteOffset, sector.length);
}
