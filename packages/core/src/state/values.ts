import { bytesOf, keyOf } from "./keys.js";

/**
 * A value in memory. A short one is a string with one character per byte, like keys: an array of bytes takes
 * some 250 bytes in addition to the content (measured), a string 16.
 */
export type Value = string | Uint8Array;

/** Longer values are kept as bytes, since an array's overhead is small in comparison. */
const shortBytes = 1_024;

export const nothing: Value = "";

export function keep(bytes: Uint8Array): Value {
  return bytes.length <= shortBytes ? keyOf(bytes) : owned(bytes);
}

export function bytesOfValue(value: Value): Uint8Array {
  return typeof value === "string" ? bytesOf(value) : value;
}

/** Memory of a larger buffer that a part may retain, beyond twice its own size. */
const keptBesideBytes = 400;

/** Copies parts of a large request or piece: a view of a part retains the whole buffer. */
export function owned(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length + keptBesideBytes ? bytes.slice() : bytes;
}
