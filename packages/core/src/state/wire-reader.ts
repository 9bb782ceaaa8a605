import { WireType } from "@bufbuild/protobuf/wire";

/** 64 bits need at most this many bytes. */
const varintBytesMax = 10;

/**
 * Reads the parts of a protobuf message, for snapshots only. A million keys are a million messages:
 * collecting the objects that `BinaryReader` makes for each (a view of the bytes, arrays for tags, two
 * objects per number) takes longer than reading with this.
 *
 * @throws Error if the bytes end too early
 */
export class WireReader {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The next field's number and wire type. */
  tag(): number {
    const tag = this.number();
    if (tag >>> 3 === 0 || tag > 0xffffffff) throw new Error("a field has no number");
    return tag;
  }

  /** Exact up to 2^53. */
  number(): number {
    let [value, scale] = [0, 1];
    for (let count = 0; count < varintBytesMax; count += 1) {
      const byte = this.#next();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    throw new Error("a number has too many bytes");
  }

  int64(): bigint {
    // Three parts of up to 28 bits: two larger ones would exceed exact numbers.
    const parts = [0, 0, 0];
    for (let count = 0; count < varintBytesMax; count += 1) {
      const byte = this.#next();
      parts[count >>> 2]! += (byte & 0x7f) << (7 * (count & 3));
      if (byte < 0x80) break;
      if (count === varintBytesMax - 1) throw new Error("a number has too many bytes");
    }
    const [low, middle, high] = parts as [number, number, number];
    return BigInt.asIntN(64, BigInt(low) + (BigInt(middle) << 28n) + (BigInt(high) << 56n));
  }

  /** Length of the field after a tag, bytes. */
  lengthOf(tag: number): number {
    if ((tag & 7) !== WireType.LengthDelimited) throw new Error("a field is of another kind");
    return this.number();
  }

  /** Returns the field after a tag, as a view. */
  bytesOf(tag: number): Uint8Array {
    const length = this.lengthOf(tag);
    return this.#bytes.subarray(this.at, this.#advance(length));
  }

  /** Skips an unknown field. */
  skip(tag: number): void {
    const type: WireType = tag & 7;
    if (type === WireType.Varint) this.number();
    else if (type === WireType.Bit64) this.#advance(8);
    else if (type === WireType.Bit32) this.#advance(4);
    else this.#advance(this.lengthOf(tag));
  }

  #next(): number {
    return this.#bytes[this.#advance(1) - 1]!;
  }

  #advance(bytes: number): number {
    if (this.at + bytes > this.#bytes.length) throw new Error("a message is cut off");
    this.at += bytes;
    return this.at;
  }
}
