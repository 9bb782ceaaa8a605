import { pieceBytesMax } from "../../journal/snapshots.js";

/** A frame is its length, 4 bytes, and so many bytes. One of length 0 says: I am here. */
const lengthBytes = 4;

/** The largest are pieces of snapshots. */
export const frameBytesMax = pieceBytesMax;

/** Before it is known who is there, nobody gets more of our memory. */
export const helloBytesMax = 16 * 1024;

export function frame(parts: readonly Uint8Array[]): Uint8Array[] {
  const length = Buffer.allocUnsafe(lengthBytes);
  length.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    0,
  );
  return [length, ...parts];
}

/** Cuts a stream of bytes into frames. */
export class Frames {
  /** Until it is known who is there. */
  bytesMax = helloBytesMax;
  readonly #take: (body: Buffer) => void;
  #chunks: Buffer[] = [];
  #length = 0;
  #needed = lengthBytes;

  /** @param take gets each frame's body, which is valid during the call only */
  constructor(take: (body: Buffer) => void) {
    this.#take = take;
  }

  /** A part of a frame is there. */
  get isWithin(): boolean {
    return this.#length > 0;
  }

  /** @throws RangeError for a length that no frame has */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // What is put together is put together once, when all of it is there.
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
