/** Castagnoli's polynomial, bits reversed. */
const polynomial = 0x82f6_3b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? polynomial : 0);
  return remainder;
});

/**
 * The checksum of iSCSI, ext4 and others: detects every error of up to three bits, and every burst of up to
 * 32.
 */
export function crc32c(bytes: Uint8Array): number {
  let remainder = 0xffff_ffff;
  for (let index = 0; index < bytes.length; index += 1) {
    remainder = table[(remainder ^ bytes[index]!) & 0xff]! ^ (remainder >>> 8);
  }
  return ~remainder >>> 0;
}
