/**
 * RFC 7541, appendix B: code lengths by byte. Codes of one length are in the order of their bytes, so the
 * lengths determine them.
 */
// oxfmt-ignore
const bitsOf: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
  28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6,
  6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6,
  6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
  20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23,
  22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22,
  23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22,
  25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const bitsMost = 30;

/**
 * For each length: the first code, and the bytes with codes of that length. The end-of-string code (30 ones)
 * is omitted.
 */
const firstCode: number[] = [];
const bytesOf: number[][] = [];
for (let bits = 0, code = 0; bits <= bitsMost; bits += 1, code *= 2) {
  firstCode.push(code);
  bytesOf.push(bitsOf.flatMap((each, byte) => (each === bits ? [byte] : [])));
  code += bytesOf[bits]!.length;
}

/**
 * Returns undefined for an invalid Huffman code: one that contains end-of-string, or is not padded with ones
 * to a whole byte.
 */
export function huffmanText(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = "";
  let code = 0;
  let bits = 0;
  for (let at = start; at < end; at += 1)
    for (let shift = 7; shift >= 0; shift -= 1) {
      code = code * 2 + ((bytes[at]! >> shift) & 1);
      bits += 1;
      if (bits > bitsMost) return undefined;
      const byte = bytesOf[bits]![code - firstCode[bits]!];
      if (byte === undefined) continue;
      text += String.fromCharCode(byte);
      code = 0;
      bits = 0;
    }
  return bits < 8 && code === 2 ** bits - 1 ? text : undefined;
}
