import type { Socket } from "node:net";
import { LeaseholdError } from "leasehold/common";
import { Buffers } from "../buffers.js";

/**
 * The limit of a frame's JSON. A list of 1,000 files, or of 5,000 blocks, takes less than a quarter of it.
 */
const headBytesMax = 4 * 2 ** 20;
/** The limit of a frame's data. */
const bodyBytesMax = 4 * 2 ** 20;
/** The lengths of head and body, 32 bits each. */
const lengthBytes = 8;

/** Data up to this length is copied behind its head: that costs less than a second write. */
const copiedBytesMax = 16 * 2 ** 10;
/** Longer frames are gathered in memory that is reused. */
const reusedBytesMin = 64 * 2 ** 10;

/** One request or answer: JSON and data. */
export interface Frame {
  readonly head: unknown;
  readonly body: Uint8Array;
  /** Call it when nothing uses the body any more. A receiver that keeps the body does not call it. */
  readonly release: () => void;
}

/** Sockets with frames to be sent at the end of this turn of the event loop. */
const corked = new Set<Socket>();

/**
 * Writes a frame. All frames of one turn of the event loop are sent together, because a system call costs
 * more than a short frame.
 */
export function writeFrame(socket: Socket, head: unknown, body: Uint8Array): void {
  const text = JSON.stringify(head);
  const headBytes = Buffer.byteLength(text);
  const isOne = body.length <= copiedBytesMax;
  const first = Buffer.allocUnsafe(lengthBytes + headBytes + (isOne ? body.length : 0));
  first.writeUInt32BE(headBytes, 0);
  first.writeUInt32BE(body.length, 4);
  first.write(text, lengthBytes);
  if (isOne) first.set(body, lengthBytes + headBytes);
  if (!corked.has(socket)) {
    if (corked.size === 0) setImmediate(uncorkAll);
    corked.add(socket);
    socket.cork();
  }
  socket.write(first);
  if (!isOne) socket.write(body);
}

function uncorkAll(): void {
  const sockets = [...corked];
  corked.clear();
  for (const socket of sockets) socket.uncork();
}

/** Splits incoming data into frames. Lengths are checked before anything is buffered. */
export class FrameReader {
  readonly #buffers = new Buffers();
  readonly #lengths = Buffer.alloc(lengthBytes);
  /** The frame being gathered, and whether its memory is reused. */
  #gathered: Buffer = this.#lengths;
  #filled = 0;
  #headBytes: number | undefined;

  /** @throws LeaseholdError `VERSION_MISMATCH` if the data is not a frame. */
  read(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    for (let from = 0; from < chunk.length;) {
      const copied = chunk.copy(this.#gathered, this.#filled, from);
      from += copied;
      this.#filled += copied;
      if (this.#filled < this.#gathered.length) break;
      if (this.#headBytes === undefined) this.#begin();
      else frames.push(this.#end(this.#headBytes));
    }
    return frames;
  }

  #begin(): void {
    const [head, body] = [this.#lengths.readUInt32BE(0), this.#lengths.readUInt32BE(4)];
    if (head > headBytesMax || body > bodyBytesMax)
      throw new LeaseholdError("VERSION_MISMATCH", "these bytes do not come from a node of files");
    const bytes = head + body;
    this.#headBytes = head;
    this.#gathered = bytes < reusedBytesMin ? Buffer.allocUnsafe(bytes) : viewOf(this.#buffers.take(bytes));
    this.#filled = 0;
  }

  #end(headBytes: number): Frame {
    const all = this.#gathered;
    this.#gathered = this.#lengths;
    this.#filled = 0;
    this.#headBytes = undefined;
    const head: unknown = JSON.parse(all.toString("utf8", 0, headBytes));
    const release = (): void => {
      if (all.length >= reusedBytesMin) this.#buffers.give(all);
    };
    // Not a Buffer, because a Buffer's slices are not copies.
    const body = new Uint8Array(all.buffer, all.byteOffset + headBytes, all.length - headBytes);
    return { head, body, release };
  }
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
