import { pieceBytesMax } from "../../journal/snapshots.js";

/** A frame is a length of 4 bytes, and that many bytes. A frame of length 0 is a heartbeat. */
const lengthBytes = 4;

/** The largest frames are pieces of snapshots. */
export const frameBytesMax = pieceBytesMax;

/** The bound for an unidentified peer. */
export const helloBytesMax = 16 * 1024;

export function frame(parts: readonly Uint8Array[]): Uint8Array[] {
  const length = Buffer.allocUnsafe(lengthBytes);
  length.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    0,
  );
  return [length, ...parts];
}

/** Splits a stream of bytes into frames. */
export class Frames {
  /** Raised once the peer is identified. */
  bytesMax = helloBytesMax;
  readonly #take: (body: Buffer) => void;
  #chunks: Buffer[] = [];
  #length = 0;
  #needed = lengthBytes;

  /** @param take receives each frame's body, which is valid only during the call */
  constructor(take: (body: Buffer) => void) {
    this.#take = take;
  }

  /** Whether a part of a frame has arrived. */
  get isWithin(): boolean {
    return this.#length > 0;
  }

  /** @throws RangeError for an invalid length */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // Chunks are joined only once, when all have arrived.
    if (this.#length < this.#needed) return;
    let bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#needed = lengthBytes;
    while (bytes.length >= lengthBytes) {
      const length = bytes.readUInt32BE(0);
      if (length > this.bytesMax) throw new RangeError(`a frame of ${length} bytes`);
      const end = lengthBytes + length;
      if (bytes.length < end) {
        this.#needed = end;
        break;
      }
      this.#take(bytes.subarray(lengthBytes, end));
      bytes = bytes.subarray(end);
    }
    this.#chunks = bytes.length === 0 ? [] : [bytes];
    this.#length = bytes.length;
  }
}
