import type { Socket } from "node:net";
import { LeaseholdError } from "leasehold/common";

/** The limit of JSON. A list of 1,000 files, or of 5,000 blocks, takes less than a quarter of it. */
const headBytesMax = 4 * 2 ** 20;
/** The limit of the data of one call. */
const bodyBytesMax = 4 * 2 ** 20;
/** The lengths of head and body, 32 bits each. */
const lengthBytes = 8;

/** One request or answer: JSON, and data. */
export interface Frame {
  readonly head: unknown;
  readonly body: Uint8Array;
}

export function writeFrame(socket: Socket, head: unknown, body: Uint8Array): void {
  const text = Buffer.from(JSON.stringify(head));
  const lengths = Buffer.alloc(lengthBytes);
  lengths.writeUInt32BE(text.length, 0);
  lengths.writeUInt32BE(body.length, 4);
  socket.cork();
  socket.write(Buffer.concat([lengths, text]));
  if (body.length > 0) socket.write(body);
  socket.uncork();
}

/** Splits incoming data into frames. Lengths are checked before anything is buffered. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = lengthBytes;
  #headBytes: number | undefined;

  /** @throws LeaseholdError `VERSION_MISMATCH` if the data is not a frame. */
  read(chunk: Buffer): Frame[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const frames: Frame[] = [];
    while (this.#bytes >= this.#needed) {
      const bytes = this.#take(this.#needed);
      if (this.#headBytes === undefined) {
        const [head, body] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
        if (head > headBytesMax || body > bodyBytesMax)
          throw new LeaseholdError("VERSION_MISMATCH", "these bytes do not come from a node of files");
        this.#headBytes = head;
        this.#needed = head + body;
      } else {
        const head: unknown = JSON.parse(bytes.toString("utf8", 0, this.#headBytes));
        frames.push({ head, body: bytes.subarray(this.#headBytes) });
        this.#headBytes = undefined;
        this.#needed = lengthBytes;
      }
    }
    return frames;
  }

  #take(count: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#bytes = all.length - count;
    this.#chunks = this.#bytes === 0 ? [] : [all.subarray(count)];
    return all.subarray(0, count);
  }
}
