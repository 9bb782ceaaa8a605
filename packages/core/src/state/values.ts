import { bytesOf, keyOf } from "./keys.js";

/**
 * A value as it is kept: a short one as a string with one character for each byte, like keys. An array of
 * bytes takes some 250 bytes beside them (measured), the string 16.
 */
export type Value = string | Uint8Array;

/** Longer values are kept as bytes: what their arrays take beside is little then. */
const shortBytes = 1_024;

export const nothing: Value = "";

export function keep(bytes: Uint8Array): Value {
  return bytes.length <= shortBytes ? keyOf(bytes) : owned(bytes);
}

export function bytesOfValue(value: Value): Uint8Array {
  return typeof value === "string" ? bytesOf(value) : value;
}

/** Beside itself and as much again, so much may be kept in memory by a part of something larger. */
const keptBesideBytes = 400;

/**
 * A part of something larger keeps all of it in memory: what is kept of a large request, or piece, is copied
 * then.
 */
export function owned(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length + keptBesideBytes ? bytes.slice() : bytes;
}
