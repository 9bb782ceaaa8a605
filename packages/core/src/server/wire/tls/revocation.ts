import { invalidConfig } from "leasehold/common";
import { pemBlocks } from "./pem.js";

/** Revoked certificates. */
export interface Revoked {
  /** Normalized by `serialText`. */
  readonly serials: ReadonlySet<string>;
  /** When the list's next update is due, system time; infinite if it names no time. */
  readonly nextUpdateMs: number;
}

const tag = { integer: 0x02, utcTime: 0x17, generalizedTime: 0x18, sequence: 0x30, bitString: 0x03 };

interface Value {
  readonly tag: number;
  readonly content: Buffer;
}

/**
 * Yields consecutive values in DER.
 *
 * @throws RangeError
 */
function values(bytes: Buffer): Value[] {
  const found: Value[] = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at + 1];
    if (first === undefined) throw new RangeError("it ends in the middle");
    const digits = first < 0x80 ? 0 : first & 0x7f;
    if (first === 0x80 || digits > 4) throw new RangeError("a length is none");
    const start = at + 2 + digits;
    if (start > bytes.length) throw new RangeError("it ends in the middle");
    const length = digits === 0 ? first : bytes.readUIntBE(at + 2, digits);
    if (start + length > bytes.length) throw new RangeError("it ends in the middle");
    found.push({ tag: bytes[at]!, content: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return found;
}

/**
 * Reads the revocation lists of a file (RFC 5280, section 5.1), PEM or DER. The file is trusted, so its
 * signature is not verified. An outdated list still counts, since otherwise all connections would be refused
 * from that moment on.
 *
 * @param name the file's name for errors
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function readRevoked(file: Buffer, name: string): Revoked {
  const serials = new Set<string>();
  let nextUpdateMs = Number.POSITIVE_INFINITY;
  try {
    for (const list of listsOf(file)) nextUpdateMs = Math.min(nextUpdateMs, readList(list, serials));
  } catch (error) {
    throw invalidConfig(`${name} is no list of revoked certificates: ${(error as Error).message}`);
  }
  return { serials, nextUpdateMs };
}

function listsOf(file: Buffer): Buffer[] {
  if (!file.includes("-----BEGIN")) return [file];
  const lists = pemBlocks(file, "X509 CRL");
  if (lists.length === 0) throw new RangeError("it has none");
  return lists;
}

/** @returns the time of the next update */
function readList(bytes: Buffer, serials: Set<string>): number {
  const [list, ...behind] = values(bytes);
  if (list?.tag !== tag.sequence || behind.length > 0) throw new RangeError("it is none");
  const [signed, algorithm, signature] = values(list.content);
  if (signed?.tag !== tag.sequence || algorithm?.tag !== tag.sequence || signature?.tag !== tag.bitString)
    throw new RangeError("it is none");
  const parts = values(signed.content);
  if (parts[0]?.tag === tag.integer) parts.shift();
  const [algorithmAgain, issuer, thisUpdate, ...rest] = parts;
  if (algorithmAgain?.tag !== tag.sequence || issuer?.tag !== tag.sequence || !isTime(thisUpdate))
    throw new RangeError("it is none");
  const next = isTime(rest[0]) ? rest.shift() : undefined;
  const revoked = rest[0]?.tag === tag.sequence ? values(rest[0].content) : [];
  for (const entry of revoked) {
    const [serial] = values(entry.content);
    if (serial?.tag !== tag.integer) throw new RangeError("a serial number is invalid");
    serials.add(serialText(signedHex(serial.content)));
  }
  return next === undefined ? Number.POSITIVE_INFINITY : timeMs(next);
}

/**
 * RFC 5280 does not allow negative serial numbers, but authorities have issued some. DER uses two's
 * complement.
 */
function signedHex(integer: Buffer): string {
  if (integer.length === 0) throw new RangeError("a serial number is invalid");
  return BigInt.asIntN(8 * integer.length, BigInt(`0x${integer.toString("hex")}`)).toString(16);
}

/**
 * Normalizes a serial number for comparison: lower-case hexadecimal without leading zeros, with a sign if
 * negative.
 */
export function serialText(hex: string): string {
  return hex.toLowerCase().replace(/^(-?)0+(?=.)/, "$1");
}

function isTime(value: Value | undefined): value is Value {
  return value?.tag === tag.utcTime || value?.tag === tag.generalizedTime;
}

function timeMs({ content, tag: kind }: Value): number {
  const text = content.toString("latin1");
  const year = kind === tag.utcTime ? `${Number(text.slice(0, 2)) < 50 ? "20" : "19"}` : "";
  const [, date, hours, minutes, seconds] = /^(\d{8})(\d\d)(\d\d)(\d\d)Z$/.exec(year + text) ?? [];
  if (date === undefined) throw new RangeError("a time is none");
  const day = `${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}`;
  return Date.parse(`${day}T${hours}:${minutes}:${seconds}Z`);
}
