import { LeaseholdError } from "../../lease/errors.js";
import { crc32c } from "./crc32c.js";

/**
 * What this library writes into stores: one line of text, `<format>/<version> <json> <crc32c>`, that people can read in an
 * editor or with the store's own tools. The checksum is over everything before it.
 */
const encoder = new TextEncoder();
/** Refuses what is no UTF-8, and leaves a byte-order mark where it is, so that no two byte strings decode to one text. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A space and eight hexadecimal digits. */
const trailerBytes = 9;

/** The longest part of foreign content that a message repeats. */
const quotedBytesMax = 24;

export function encodeEnvelope(format: string, json: string): Uint8Array {
  const body = encoder.encode(`${format} ${json}`);
  const envelope = new Uint8Array(body.length + trailerBytes);
  envelope.set(body);
  const trailer = trailerOf(body);
  for (let index = 0; index < trailerBytes; index += 1)
    envelope[body.length + index] = trailer.charCodeAt(index);
  return envelope;
}

function trailerOf(body: Uint8Array): string {
  return ` ${crc32c(body).toString(16).padStart(8, "0")}`;
}

/**
 * The JSON text of an envelope, and its values. Each format has one way to write a value: the decoder encodes
 * again and compares.
 *
 * @throws LeaseholdError `STORE_FOREIGN` for anything that does not begin as this format and version do, `STORE_CORRUPT` when
 * the checksum is not right.
 */
export function decodeEnvelope(format: string, envelope: Uint8Array): unknown {
  const head = `${format} `;
  if (!standsAt(envelope, 0, head)) throw new LeaseholdError("STORE_FOREIGN", foreign(format, envelope));
  const body = envelope.subarray(0, Math.max(0, envelope.length - trailerBytes));
  try {
    if (standsAt(envelope, body.length, trailerOf(body)))
      return JSON.parse(decoder.decode(body.subarray(head.length)));
  } catch {
    // No UTF-8, or no JSON: whatever it is, it is not what was written.
  }
  throw corrupt("its checksum is wrong", envelope);
}

/** The bytes from there on begin with that text, which is ASCII. */
function standsAt(bytes: Uint8Array, from: number, text: string): boolean {
  for (let index = 0; index < text.length; index += 1)
    if (bytes[from + index] !== text.charCodeAt(index)) return false;
  return true;
}

/** A format of ours with another version is told from what is not ours at all. */
function foreign(format: string, envelope: Uint8Array): string {
  const [name] = format.split("/");
  const [found = ""] = textOf(envelope.subarray(0, format.length + 1)).split(" ");
  return found.startsWith(`${name}/`)
    ? `it was written in the format ${found} of another version of Leasehold; this one knows ${format}`
    : `expected ${format} and found ${quote(envelope)}`;
}

export function corrupt(why: string, envelope: Uint8Array): LeaseholdError {
  return new LeaseholdError(
    "STORE_CORRUPT",
    `the record that begins with ${quote(envelope)} is damaged: ${why}`,
  );
}

/** True when both have the same bytes. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}

function quote(bytes: Uint8Array): string {
  if (bytes.length === 0) return "nothing";
  const beginning = textOf(bytes.subarray(0, quotedBytesMax));
  return JSON.stringify(beginning) + (bytes.length > quotedBytesMax ? "…" : "");
}

/** One character for each byte. */
function textOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}
