import { LeaseholdError } from "../../lease/errors.js";
import { crc32c } from "./crc32c.js";

/**
 * The format in which this library writes into stores: one line of text, `<format>/<version> <json>
 * <crc32c>`, which people can read in an editor or with the store's own tools. The checksum covers everything
 * before it.
 */
const encoder = new TextEncoder();
/** Refuses invalid UTF-8, and keeps a byte-order mark, so that no two byte strings decode to one text. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A space and eight hexadecimal digits. */
const trailerBytes = 9;

/** How much of a foreign content an error message quotes. */
const quotedBytesMax = 24;

const space = 0x20;
const digits = encoder.encode("0123456789abcdef");
/** Space for the trailer, which avoids a second buffer. */
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

/** Whether exactly this checksum follows the body. */
function trailerIs(checksum: number, envelope: Uint8Array, bodyBytes: number): boolean {
  if (envelope[bodyBytes] !== space) return false;
  let left = checksum;
  for (let index = envelope.length - 1; index > bodyBytes; index -= 1) {
    if (envelope[index] !== digits[left & 0xf]) return false;
    left >>>= 4;
  }
  return true;
}

/** The content of an envelope: the value, and its JSON text. */
export interface Opened {
  readonly json: string;
  readonly value: unknown;
}

/**
 * Opens an envelope. Each format has only one way to write a value, so a decoder encodes the value again and
 * compares the result with `json`. That is as strict as comparing the bytes: format and checksum were
 * compared byte by byte, and no two byte strings decode to the same text.
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
    // Invalid UTF-8 or JSON: damaged in either case.
  }
  throw corrupt("its checksum is wrong", envelope);
}

/**
 * The value in an envelope.
 *
 * @throws LeaseholdError `STORE_FOREIGN` for anything that does not begin with this format and version,
 * `STORE_CORRUPT` when the checksum is wrong.
 */
export function decodeEnvelope(format: string, envelope: Uint8Array): unknown {
  return openEnvelope(format, envelope).value;
}

/** Whether the bytes from `from` on begin with this ASCII text. */
function standsAt(bytes: Uint8Array, from: number, text: string): boolean {
  for (let index = 0; index < text.length; index += 1)
    if (bytes[from + index] !== text.charCodeAt(index)) return false;
  return true;
}

/** The message for foreign content. It tells apart another version of this format. */
function foreign(format: string, envelope: Uint8Array): string {
  const [name] = format.split("/");
  const [found = ""] = textOf(envelope.subarray(0, format.length + 1)).split(" ");
  return found.startsWith(`${name}/`)
    ? `its format is ${found}, of another version of Leasehold; this version supports ${format}`
    : `expected ${format} and found ${quote(envelope)}`;
}

export function corrupt(why: string, envelope: Uint8Array): LeaseholdError {
  return new LeaseholdError(
    "STORE_CORRUPT",
    `the record that begins with ${quote(envelope)} is damaged: ${why}`,
  );
}

/** Whether both have the same bytes. */
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

/** One character per byte. */
function textOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}
