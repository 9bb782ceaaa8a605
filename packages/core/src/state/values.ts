import { bytesOf, keyOf } from "./keys.js";

/**
 * A value in memory: a short one as a string with one character for each byte, like keys. An array of bytes
 * takes some 250 bytes beside them (measured), the string 16.
 */
export type Value = string | Uint8Array;

/** Longer values are kept as bytes: their arrays' overhead is small then. */
const shortBytes = 1_024;

export const nothing: Value = "";

export function keep(bytes: Uint8Array): Value {
  return bytes.length <= shortBytes ? keyOf(bytes) : owned(bytes);
}

export function bytesOfValue(value: Value): Uint8Array {
  return typeof value === "string" ? bytesOf(value) : value;
}

/** Memory that a part may retain of something larger, beyond twice its own size. */
const keptBesideBytes = 400;

/** A view of a part retains all of the buffer: parts of a large request, or piece, are copied. */
export function owned(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length + keptBesideBytes ? bytes.slice() : bytes;
}
