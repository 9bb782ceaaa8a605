import { WireType } from "@bufbuild/protobuf/wire";
import type { Value } from "./values.js";

/** Output is put into arrays of this size, starting with a small one if the total is unknown. */
const slabBytesFirst = 4 * 1024;
const slabBytesMax = 256 * 1024;

const highBit = 0x80;

/** Encoded length of a number from 0 to 2^53, bytes. */
export function varintLength(value: number): number {
  let length = 1;
  for (let left = value; left >= highBit; left = Math.floor(left / highBit)) length += 1;
  return length;
}

export function int64Length(value: bigint): number {
  if (value < 0n) return 10;
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? varintLength(Number(value)) : value < 1n << 56n ? 8 : 9;
}

/** Encoded length of a length-delimited field whose tag takes one byte. */
export function fieldLength(length: number): number {
  return 1 + varintLength(length) + length;
}

/**
 * Writes protobuf messages, for snapshots and long answers: each into a part of a large array, instead of an
 * array for each message.
 */
export class WireWriter {
  #slab: Uint8Array;
  #start = 0;
  #at = 0;

  /** @param bytes expected total length */
  constructor(bytes = slabBytesFirst) {
    this.#slab = new Uint8Array(bytes);
  }

  /** @param length of the message, bytes */
  begin(length: number): void {
    if (this.#at + length > this.#slab.length) {
      const slabBytes = Math.min(2 * this.#slab.length, slabBytesMax);
      this.#slab = new Uint8Array(Math.max(slabBytes, length));
      this.#at = 0;
    }
    this.#start = this.#at;
  }

  /** Ends the message and returns it. */
  end(): Uint8Array {
    return this.#slab.subarray(this.#start, this.#at);
  }

  number(field: number, value: number): void {
    this.#byte((field << 3) | WireType.Varint);
    this.#varint(value);
  }

  int64(field: number, value: bigint): void {
    this.#byte((field << 3) | WireType.Varint);
    let left = BigInt.asUintN(64, value);
    while (left > BigInt(Number.MAX_SAFE_INTEGER)) {
      this.#byte(Number(left & 0x7fn) | highBit);
      left >>= 7n;
    }
    this.#varint(Number(left));
  }

  /** Writes the head of a length-delimited field; the content follows. */
  lengthOf(field: number, length: number): void {
    this.#byte((field << 3) | WireType.LengthDelimited);
    this.#varint(length);
  }

  field(field: number, value: Value): void {
    this.lengthOf(field, value.length);
    if (typeof value === "string")
      for (let index = 0; index < value.length; index += 1)
        this.#slab[this.#at + index] = value.charCodeAt(index);
    else this.#slab.set(value, this.#at);
    this.#at += value.length;
  }

  #varint(value: number): void {
    let left = value;
    while (left >= highBit) {
      this.#byte((left % highBit) | highBit);
      left = Math.floor(left / highBit);
    }
    this.#byte(left);
  }

  #byte(value: number): void {
    this.#slab[this.#at] = value;
    this.#at += 1;
  }
}
