/** The table of the Castagnoli polynomial, which zlib does not have. */
const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? 0x82f63b78 : 0);
  return remainder;
});

/** Checksum of bytes that follow those with the checksum `chain`; 0 at the beginning. */
export function crc32c(bytes: Uint8Array, chain: number): number {
  let remainder = ~chain;
  for (const byte of bytes) remainder = (remainder >>> 8) ^ table[(remainder ^ byte) & 0xff]!;
  return ~remainder >>> 0;
}
