import { crc32 } from "node:zlib";

/** Continues from `chain`. For an empty buffer zlib may return its initial value instead. */
export function checksumOf(bytes: Uint8Array, chain: number): number {
  return bytes.length === 0 ? chain : crc32(bytes, chain);
}
