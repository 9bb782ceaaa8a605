import { huffmanText } from "./huffman.js";
import { type Field, staticTable } from "./static-table.js";

/** RFC 7541, section 4.1: overhead of an entry in addition to its name and value. */
const entryOverhead = 32;

/** The initial table size at both ends; we announce no other. */
export const tableBytesMax = 4_096;

/** A header block is invalid: the tables of both ends have diverged. */
export class CompressionError extends Error {}

export interface Decoded {
  readonly fields: readonly Field[];
  /** The fields exceed the bound, and some are missing here. */
  readonly isTooLarge: boolean;
}

/** Decodes the header blocks of one direction of a connection, in order (RFC 7541). */
export class HeaderDecoder {
  readonly #listBytesMax: number;
  /** Newest first. */
  readonly #table: Field[] = [];
  #tableBytes = 0;
  #tableBytesMax = tableBytesMax;
  /** Counts changes of the table. While it is unchanged, equal blocks mean the same. */
  generation = 0;
  #block: Uint8Array = new Uint8Array();
  #at = 0;

  /** @param listBytesMax bound of the fields of one block, each with an overhead of 32 bytes */
  constructor(listBytesMax: number) {
    this.#listBytesMax = listBytesMax;
  }

  /** @throws CompressionError */
  decode(block: Uint8Array): Decoded {
    this.#block = block;
    this.#at = 0;
    const fields: Field[] = [];
    let bytes = 0;
    let isBegun = false;
    while (this.#at < block.length) {
      const first = block[this.#at]!;
      if ((first & 0xe0) === 0x20) {
        if (isBegun) throw new CompressionError("a table's size changes at the beginning only");
        this.#resize(this.#integer(5));
        continue;
      }
      isBegun = true;
      const field = (first & 0x80) === 0 ? this.#literal(first) : this.#entry(this.#integer(7));
      bytes += sizeOf(field);
      if (bytes <= this.#listBytesMax) fields.push(field);
    }
    return { fields, isTooLarge: bytes > this.#listBytesMax };
  }

  #literal(first: number): Field {
    const isKept = (first & 0xc0) === 0x40;
    const index = this.#integer(isKept ? 6 : 4);
    const name = index === 0 ? this.#text() : this.#entry(index)[0];
    const field: Field = [name, this.#text()];
    if (isKept) this.#keep(field);
    return field;
  }

  #entry(index: number): Field {
    const field =
      index <= staticTable.length ? staticTable[index - 1] : this.#table[index - staticTable.length - 1];
    if (field === undefined) throw new CompressionError(`no entry ${index}`);
    return field;
  }

  #keep(field: Field): void {
    this.generation += 1;
    const size = sizeOf(field);
    this.#evict(this.#tableBytesMax - size);
    // An entry larger than the table empties the table, and is not added.
    if (size > this.#tableBytesMax) return;
    this.#table.unshift(field);
    this.#tableBytes += size;
  }

  #resize(bytes: number): void {
    if (bytes > tableBytesMax) throw new CompressionError(`a table of ${bytes} bytes`);
    this.generation += 1;
    this.#tableBytesMax = bytes;
    this.#evict(bytes);
  }

  #evict(bytesMax: number): void {
    while (this.#tableBytes > bytesMax && this.#table.length > 0)
      this.#tableBytes -= sizeOf(this.#table.pop()!);
  }

  /** Section 5.1: an integer whose low bits are in the first byte. */
  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte();
      // Larger numbers are not accepted.
      if (shift > 21) throw new CompressionError("a number is too large");
      value += (byte & 0x7f) * 2 ** shift;
      if ((byte & 0x80) === 0) return value;
    }
  }

  /** Section 5.2: a string. */
  #text(): string {
    const isCoded = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#block.length) throw new CompressionError("a block ends too early");
    this.#at = end;
    if (!isCoded) return textOf(this.#block, start, end);
    const text = huffmanText(this.#block, start, end);
    if (text === undefined) throw new CompressionError("no Huffman code");
    return text;
  }

  #byte(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw new CompressionError("a block ends too early");
    this.#at += 1;
    return byte;
  }
}

function sizeOf([name, value]: Field): number {
  return name.length + value.length + entryOverhead;
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += 1) text += String.fromCharCode(bytes[at]!);
  return text;
}
