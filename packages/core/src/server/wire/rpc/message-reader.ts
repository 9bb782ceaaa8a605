import { type Status, statusCode } from "./call.js";

/** Length of a message's head: a compression flag, and the message's length. */
export const prefixBytes = 5;

const heldBytesMin = 256;

/** A source of a client's messages. */
export interface Messages {
  /** Returns undefined if no message is complete yet, or a status if the input is refused. */
  next(): Uint8Array | Status | undefined;
}

/**
 * Splits a client's input into messages, on demand. Until then the bytes are in one buffer: pieces of any
 * size take at most twice their bytes.
 */
export class MessageReader implements Messages {
  readonly #bytesMax: number;
  #held: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** @param bytesMax bound of one message */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of messages that are incomplete, or not requested yet. */
  get heldBytes(): number {
    return this.#end - this.#start;
  }

  push(piece: Uint8Array): void {
    const length = this.#end - this.#start;
    if (this.#end + piece.length > this.#held.length) {
      const room = Math.max(heldBytesMin, 2 * length, length + piece.length);
      const wider = room > this.#held.length ? Buffer.allocUnsafe(room) : this.#held;
      this.#held.copy(wider, 0, this.#start, this.#end);
      this.#held = wider;
      this.#start = 0;
      this.#end = length;
    }
    this.#held.set(piece, this.#end);
    this.#end += piece.length;
  }

  /** Returns a copy of the message, if this piece is exactly one message and nothing else is buffered. */
  only(piece: Uint8Array): Buffer | undefined {
    const isOne =
      this.#start === this.#end &&
      piece.length >= prefixBytes &&
      piece[0] === 0 &&
      piece.length - prefixBytes <= this.#bytesMax &&
      lengthIn(piece, 0) === piece.length - prefixBytes;
    return isOne ? Buffer.from(piece.subarray(prefixBytes)) : undefined;
  }

  /** Whether a complete message is buffered. */
  get hasWhole(): boolean {
    const held = this.heldBytes;
    return held >= prefixBytes && held - prefixBytes >= lengthIn(this.#held, this.#start);
  }

  next(): Buffer | Status | undefined {
    if (this.heldBytes < prefixBytes) return undefined;
    if (this.#held[this.#start] !== 0)
      return { code: statusCode.unimplemented, details: "grpc: compressed messages are not taken" };
    const length = lengthIn(this.#held, this.#start);
    if (length > this.#bytesMax) {
      const details = `grpc: received message larger than max (${length} vs. ${this.#bytesMax})`;
      return { code: statusCode.resourceExhausted, details };
    }
    const start = this.#start + prefixBytes;
    if (this.#end - start < length) return undefined;
    const message = Buffer.from(this.#held.subarray(start, start + length));
    this.#start = start + length;
    if (this.#start === this.#end) this.drop();
    return message;
  }

  drop(): void {
    this.#held = Buffer.alloc(0);
    this.#start = 0;
    this.#end = 0;
  }
}

function lengthIn(bytes: Uint8Array, at: number): number {
  return bytes[at + 1]! * 2 ** 24 + ((bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!);
}
