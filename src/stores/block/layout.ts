import { decodeLine, encodeLine } from "../../delta/line.js";
import { crc32c } from "../../delta/crc32c.js";
import { LeaseholdError } from "../../lease/errors.js";

/**
 * Everything is written in units of this many bytes, a multiple of every sector. Disks of today write as much in one step; where
 * one does not and loses power, the checksum tells.
 */
export const unitBytes = 4_096;

const superblockFormat = "leasehold-block/1";
const unitFormat = "leasehold-unit/1";

const encoder = new TextEncoder();

/** How a medium is laid out: written once, in its first unit. After it one unit for each slot, then the regions. */
export interface Layout {
  readonly id: string;
  /** How many processes can write at the same time. */
  readonly slots: number;
  /** Registers are spread over so many; in each, every slot has one unit. */
  readonly regions: number;
  /** How long a process may keep its slot without renewing it, ms. */
  readonly slotLeaseMs: number;
  /** δ: the bound on one operation, ms. */
  readonly delayMs: number;
}

/** A writer's records in one region, by register. */
export interface Unit {
  readonly id: string;
  readonly records: Readonly<Record<string, string>>;
}

export function sizeBytesOf({ slots, regions }: Pick<Layout, "slots" | "regions">): number {
  return unitBytes * (1 + slots + slots * regions);
}

export function slotPosition(slot: number): number {
  return unitBytes * (1 + slot);
}

/** Where a slot's unit in a region is; slot 0 is where the region begins. */
export function unitPosition({ slots }: Layout, region: number, slot: number): number {
  return unitBytes * (1 + slots + region * slots + slot);
}

export function regionOf({ regions }: Layout, register: string): number {
  return crc32c(encoder.encode(register)) % regions;
}

export function encodeSuperblock({ id, slots, regions, slotLeaseMs, delayMs }: Layout): Uint8Array {
  return encodeLine(
    superblockFormat,
    JSON.stringify({ id, slots, regions, slotLeaseMs, delayMs, unitBytes }),
  );
}

/** `undefined` where nothing was ever written. */
export function decodeSuperblock(bytes: Uint8Array): Layout | undefined {
  const line = lineIn(bytes);
  if (line === undefined) return undefined;
  const value = decodeLine(superblockFormat, line) as Layout & { readonly unitBytes: number };
  const numbers = [value.slots, value.regions, value.slotLeaseMs, value.delayMs];
  const isRight =
    typeof value.id === "string" && numbers.every((number) => Number.isSafeInteger(number) && number > 0);
  if (isRight && value.unitBytes === unitBytes) return value;
  throw new LeaseholdError("STORE_CORRUPT", "the first unit does not tell how the medium is laid out");
}

export function encodeUnit({ id, records }: Unit): Uint8Array {
  return encodeLine(unitFormat, JSON.stringify({ id, records }));
}

export function decodeUnit(bytes: Uint8Array): Unit | undefined {
  const line = lineIn(bytes);
  return line === undefined ? undefined : (decodeLine(unitFormat, line) as Unit);
}

/** What is in a unit before the zeros that fill it; `undefined` if it is all zeros. */
export function lineIn(bytes: Uint8Array): Uint8Array | undefined {
  const end = bytes.indexOf(0);
  const line = end === -1 ? bytes : bytes.subarray(0, end);
  if (bytes.subarray(line.length).some((byte) => byte !== 0)) {
    throw new LeaseholdError("STORE_FOREIGN", "found bytes that are none of Leasehold's");
  }
  return line.length === 0 ? undefined : line;
}

/** A whole unit with the line at its beginning. */
export function fillUnit(unit: Uint8Array, line: Uint8Array): Uint8Array {
  if (line.length > unit.length) {
    throw new LeaseholdError("STORE_FULL", `${line.length} bytes do not fit into a unit of ${unit.length}`);
  }
  unit.fill(0);
  unit.set(line);
  return unit;
}
