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

const space = 0x20;
const digits = encoder.encode("0123456789abcdef");
/** Room for the trailer, so that it needs no second buffer. */
const room = " ".repeat(trailerBytes);

export function encodeEnvelope(format: string, json: string): Uint8Array {
  const envelope = encoder.encode(`${format} ${json}${room}`);
  const bodyBytes = envelope.length - trailerBytes;
  let checksum = crc32c(envelope.subarray(0, bodyBytes));
  for (let index = envelope.length - 1; index > bodyBytes; index -= 1) {
    envelope[index] = digits[checksum & 0xf]!;
    checksum >>>= 4;
  }
  return envelope;
}

/** Whether that checksum stands behind the body, and nothing else. */
function trailerIs(checksum: number, envelope: Uint8Array, bodyBytes: number): boolean {
  if (envelope[bodyBytes] !== space) return false;
  let left = checksum;
  for (let index = envelope.length - 1; index > bodyBytes; index -= 1) {
    if (envelope[index] !== digits[left & 0xf]) return false;
    left >>>= 4;
  }
  return true;
}

/** What an envelope holds: the value, and the text that stands for it. */
export interface Opened {
  readonly json: string;
  readonly value: unknown;
}

/**
 * Each format has one way to write a value, so the decoder writes it again and compares: `json`, which is as good as the bytes. Format and
 * checksum were compared byte by byte, and no two byte strings are the same text.
 *
 * @throws LeaseholdError as {@link decodeEnvelope}
 */
export function openEnvelope(format: string, envelope: Uint8Array): Opened {
  const head = `${format} `;
  if (!standsAt(envelope, 0, head)) throw new LeaseholdError("STORE_FOREIGN", foreign(format, envelope));
  const body = envelope.subarray(0, Math.max(0, envelope.length - trailerBytes));
  try {
    if (trailerIs(crc32c(body), envelope, body.length)) {
      const json = decoder.decode(body.subarray(head.length));
      return { json, value: JSON.parse(json) };
    }
  } catch {
    // No UTF-8, or no JSON: whatever it is, it is not what was written.
  }
  throw corrupt("its checksum is wrong", envelope);
}

/**
 * The value in an envelope.
 *
 * @throws LeaseholdError `STORE_FOREIGN` for anything that does not begin as this format and version do, `STORE_CORRUPT` when
 * the checksum is not right.
 */
export function decodeEnvelope(format: string, envelope: Uint8Array): unknown {
  return openEnvelope(format, envelope).value;
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
