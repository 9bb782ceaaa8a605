/**
 * Clients of etcd 3.4 in Go send `:authority: http://host:port`. A slash is not allowed there (RFC 3986,
 * section 3.2), and the HTTP/2 of Node refuses the request. So each slash is made a hyphen, in place: the
 * value keeps its length in bytes and characters, hence no frame changes its size, and the dynamic tables of
 * HPACK (RFC 7541, section 4.1) at both ends keep the same entries at the same places. No table is needed
 * here.
 */

/** Of `:authority` in the static table. */
const authorityIndex = 1;
const authorityName = Buffer.from(":authority", "latin1");
/** The same as Huffman code, which has the end of the last byte filled with ones. */
const authorityNameCoded = Buffer.from("b83b5339ec327d7f", "hex");

const slash = "/".charCodeAt(0);
const hyphen = "-".charCodeAt(0);
/** Both have six bits in the Huffman code. */
const slashCode = 0b011000;
const hyphenCode = 0b010110;
const codeBits = 6;

/** The code of RFC 7541, appendix B, is in order: how long a character's is, its first bits say. */
const lastOfLength: readonly (readonly [bits: number, last: number])[] = [
  [5, 0b01001],
  [6, 0b101101],
  [7, 0b1111011],
  [8, 0b11111101],
];

/**
 * Repairs each `:authority` that stands in this header block in full. What is not understood is left as it
 * is: the server behind judges it.
 *
 * @returns whether there was one to repair
 */
export function repairAuthority(block: Uint8Array): boolean {
  const reader = new BlockReader(block);
  let isRepaired = false;
  while (reader.at < block.length) {
    const first = block[reader.at]!;
    // Indexed, or a new size of the table.
    if ((first & 0x80) !== 0) reader.integer(7);
    else if ((first & 0xe0) === 0x20) reader.integer(5);
    else {
      const index = reader.integer((first & 0xc0) === 0x40 ? 6 : 4);
      const isAuthority = index === 0 ? isAuthorityName(block, reader.text()) : index === authorityIndex;
      const value = reader.text();
      if (isAuthority && reader.isWhole && hyphens(block, value)) isRepaired = true;
    }
    if (!reader.isWhole) return isRepaired;
  }
  return isRepaired;
}

interface Text {
  readonly isCoded: boolean;
  readonly start: number;
  readonly end: number;
}

class BlockReader {
  readonly #block: Uint8Array;
  at = 0;
  /** False: the block has ended before something in it. */
  isWhole = true;

  constructor(block: Uint8Array) {
    this.#block = block;
  }

  /** RFC 7541, section 5.1: the first byte has so many bits of it. */
  integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; this.isWhole; shift += 7) {
      const byte = this.#byte();
      // Nothing in a block that is taken is so long.
      if (shift > 21) this.isWhole = false;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) break;
    }
    return value;
  }

  /** Section 5.2. */
  text(): Text {
    const isCoded = ((this.#block[this.at] ?? 0) & 0x80) !== 0;
    const length = this.integer(7);
    const start = this.at;
    this.at += length;
    if (this.at > this.#block.length) this.isWhole = false;
    return { isCoded, start, end: this.at };
  }

  #byte(): number {
    const byte = this.#block[this.at];
    if (byte === undefined) this.isWhole = false;
    this.at += 1;
    return byte ?? 0;
  }
}

function isAuthorityName(block: Uint8Array, { isCoded, start, end }: Text): boolean {
  const name = isCoded ? authorityNameCoded : authorityName;
  return end - start === name.length && name.equals(block.subarray(start, end));
}

function hyphens(block: Uint8Array, { isCoded, start, end }: Text): boolean {
  if (isCoded) return hyphensCoded(block, start, end);
  let isChanged = false;
  for (let at = start; at < end; at += 1) {
    if (block[at] !== slash) continue;
    block[at] = hyphen;
    isChanged = true;
  }
  return isChanged;
}

/** Goes on up to a character with a code of more than eight bits: none of a scheme or a name has one. */
function hyphensCoded(block: Uint8Array, start: number, end: number): boolean {
  let isChanged = false;
  const endBit = end * 8;
  for (let at = start * 8; at + 5 <= endBit;) {
    const bits = lastOfLength.find(([length, last]) => bitsAt(block, at, length) <= last)?.[0];
    if (bits === undefined || at + bits > endBit) break;
    if (bits === codeBits && bitsAt(block, at, codeBits) === slashCode) {
      flipBits(block, at, slashCode ^ hyphenCode);
      isChanged = true;
    }
    at += bits;
  }
  return isChanged;
}

/** At most eight of them. */
function bitsAt(block: Uint8Array, at: number, count: number): number {
  const byte = at >> 3;
  const two = ((block[byte] ?? 0xff) << 8) | (block[byte + 1] ?? 0xff);
  return (two >> (16 - (at & 7) - count)) & (2 ** count - 1);
}

function flipBits(block: Uint8Array, at: number, mask: number): void {
  const byte = at >> 3;
  const two = mask << (16 - (at & 7) - codeBits);
  block[byte]! ^= two >> 8;
  if ((two & 0xff) !== 0) block[byte + 1]! ^= two & 0xff;
}
