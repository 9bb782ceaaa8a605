import { crc32 } from "node:zlib";

/** Continues from `chain`. zlib reads nothing when asked for its initial value. */
export function checksumOf(bytes: Uint8Array, chain: number): number {
  return bytes.length === 0 ? chain : crc32(bytes, chain);
}
