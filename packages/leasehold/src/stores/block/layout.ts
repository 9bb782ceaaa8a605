import { decodeEnvelope, encodeEnvelope } from "../../delta/record/envelope.js";
import { crc32c } from "../../delta/record/crc32c.js";
import { LeaseholdError } from "../../lease/errors.js";

/**
 * The unit of the layout, and of a read: a multiple of every sector size. A write starts at the beginning of
 * a unit and takes as many sectors as it needs. It ends with a zero byte; older bytes after that are ignored.
 */
export const unitBytes = 4_096;

const superblockFormat = "leasehold-block/2";
const unitFormat = "leasehold-unit/2";
const hintFormat = "leasehold-hint/1";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The layout of a medium: written once, in its first unit. It is followed by a unit for each slot, and then
 * by the regions. A region has one unit for the hint and two for each slot. The two are written alternately,
 * so an interrupted write leaves the previous unit intact.
 */
export interface Layout {
  readonly id: string;
  /** The number of processes that can write at the same time. */
  readonly slots: number;
  /** Registers are spread over this many regions. */
  readonly regions: number;
  /** How long a process may keep its slot without renewing it, ms. */
  readonly slotLeaseMs: number;
  /** δ: the bound on one operation, ms. */
  readonly delayMs: number;
}

/** A writer's records in one region, by register. */
export interface Unit {
  readonly id: string;
  /** Increases with each write. Of a slot's two units, the one with the greater number is valid. */
  readonly sequence: number;
  readonly records: Readonly<Record<string, string>>;
}

/** The two units of a slot in a region. */
export type Half = 0 | 1;

function regionUnits({ slots }: Pick<Layout, "slots">): number {
  return 1 + 2 * slots;
}

export function sizeBytesOf(layout: Pick<Layout, "slots" | "regions">): number {
  return unitBytes * (1 + layout.slots + layout.regions * regionUnits(layout));
}

/** The maximum number of regions on a medium of that size. */
export function regionsMaxOf(sizeBytes: number, slots: number): number {
  return Math.floor((sizeBytes / unitBytes - 1 - slots) / regionUnits({ slots }));
}

export function slotPosition(slot: number): number {
  return unitBytes * (1 + slot);
}

/** The position of a region's hint, which is also the beginning of the region. */
export function hintPosition(layout: Layout, region: number): number {
  return unitBytes * (1 + layout.slots + region * regionUnits(layout));
}

export function unitPosition(layout: Layout, region: number, slot: number, half: Half): number {
  return hintPosition(layout, region) + unitBytes * (1 + 2 * slot + half);
}

/**
 * The region of a register. All registers of one resource are in one region, so that one read there shows
 * whether anything was announced for it.
 */
export function regionOf({ regions }: Layout, register: string): number {
  const resource = register.slice(register.indexOf("/") + 1);
  return crc32c(encoder.encode(resource)) % regions;
}

export function encodeSuperblock({ id, slots, regions, slotLeaseMs, delayMs }: Layout): Uint8Array {
  return encodeEnvelope(
    superblockFormat,
    JSON.stringify({ id, slots, regions, slotLeaseMs, delayMs, unitBytes }),
  );
}

/** The unit's content; `undefined` if it was never written. */
export function decodeSuperblock(bytes: Uint8Array): Layout | undefined {
  const envelope = envelopeIn(bytes);
  if (envelope === undefined) return undefined;
  const value = decodeEnvelope(superblockFormat, envelope) as Layout & { readonly unitBytes: number };
  const numbers = [value.slots, value.regions, value.slotLeaseMs, value.delayMs];
  const isRight =
    typeof value.id === "string" && numbers.every((number) => Number.isSafeInteger(number) && number > 0);
  if (isRight && value.unitBytes === unitBytes) return value;
  throw new LeaseholdError("STORE_CORRUPT", "the first unit has no valid layout of the medium");
}

export function encodeUnit({ id, sequence, records }: Unit): Uint8Array {
  return encodeEnvelope(unitFormat, JSON.stringify({ id, sequence, records }));
}

/**
 * `undefined`: the unit was never written. `"torn"`: a write was interrupted.
 *
 * @throws LeaseholdError `STORE_FOREIGN`
 */
export function decodeUnit(bytes: Uint8Array): Unit | "torn" | undefined {
  const envelope = envelopeIn(bytes);
  return envelope === undefined ? undefined : unlessTorn(() => decodeEnvelope(unitFormat, envelope) as Unit);
}

export function encodeHint(id: string, nonce: string): Uint8Array {
  return encodeEnvelope(hintFormat, JSON.stringify({ id, nonce }));
}

/** The hint as a unique text; `undefined` if there is none or it belongs to another medium. */
export function decodeHint(bytes: Uint8Array, id: string): string | undefined {
  const envelope = envelopeIn(bytes);
  if (envelope === undefined) return undefined;
  const hint = unlessTorn(() => decodeEnvelope(hintFormat, envelope) as { readonly id: string });
  return hint === "torn" || hint.id !== id ? undefined : decoder.decode(envelope);
}

function unlessTorn<T>(decode: () => T): T | "torn" {
  try {
    return decode();
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === "STORE_CORRUPT") return "torn";
    throw error;
  }
}

/** The content up to the first zero byte; `undefined` if there is none. */
export function envelopeIn(bytes: Uint8Array): Uint8Array | undefined {
  const end = bytes.indexOf(0);
  return end === 0 ? undefined : bytes.subarray(0, end === -1 ? bytes.length : end);
}

/** The first sectors of a unit, filled with the envelope and a final zero byte. */
export function fillSectors(unit: Uint8Array, envelope: Uint8Array, sectorBytes: number): Uint8Array {
  if (envelope.length >= unit.length) {
    throw new LeaseholdError(
      "STORE_FULL",
      `${envelope.length} bytes do not fit into a unit of ${unit.length}`,
    );
  }
  const sectors = unit.subarray(0, Math.ceil((envelope.length + 1) / sectorBytes) * sectorBytes);
  sectors.fill(0);
  sectors.set(envelope);
  return sectors;
}
