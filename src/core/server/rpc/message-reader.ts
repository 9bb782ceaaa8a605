import { type Status, statusCode } from "./call.js";

/** Every message has a byte that says whether it is compressed, and its length. */
const prefixBytes = 5;

/** Cuts what a client says into messages. */
export class MessageReader {
  readonly #bytesMax: number;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** With its prefix: what is to come until there is something to do. */
  #wanted = prefixBytes;

  /** @param bytesMax of one message */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Of a message that is not whole. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * @param take called with each whole message: a copy
   * @returns why it is not taken
   */
  push(piece: Uint8Array, take: (message: Buffer) => void): Status | undefined {
    if (this.#heldBytes + piece.length < this.#wanted) {
      this.#hold(Buffer.from(piece));
      return undefined;
    }
    let bytes = viewOf(piece);
    if (this.#heldBytes > 0) {
      this.#hold(bytes);
      bytes = Buffer.concat(this.#held);
      this.#held = [];
      this.#heldBytes = 0;
    }
    let at = 0;
    for (;;) {
      this.#wanted = prefixBytes;
      if (bytes.length - at < prefixBytes) break;
      const length = bytes.readUInt32BE(at + 1);
      if (bytes[at] !== 0)
        return refusal(statusCode.unimplemented, "grpc: compressed messages are not taken");
      if (length > this.#bytesMax) {
        const details = `grpc: received message larger than max (${length} vs. ${this.#bytesMax})`;
        return refusal(statusCode.resourceExhausted, details);
      }
      this.#wanted = prefixBytes + length;
      if (bytes.length - at < this.#wanted) break;
      take(Buffer.from(bytes.subarray(at + prefixBytes, at + this.#wanted)));
      at += this.#wanted;
    }
    if (at < bytes.length) this.#hold(Buffer.from(bytes.subarray(at)));
    return undefined;
  }

  #hold(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#held.push(piece);
    this.#heldBytes += piece.length;
  }
}

function refusal(code: number, details: string): Status {
  return { code, details };
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
