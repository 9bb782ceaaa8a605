import { crc32 } from "node:zlib";

/** Goes on from `chain`. zlib takes no bytes at all for a request of its initial value. */
export function checksumOf(bytes: Uint8Array, chain: number): number {
  return bytes.length === 0 ? chain : crc32(bytes, chain);
}
