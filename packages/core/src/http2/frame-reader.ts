import { flag, frameType, headBytes, numberAt, payloadBytesMax, preface } from "./frames.js";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  /** The input; the payload is the part from `start` to `end`. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Why input is refused: it is not HTTP/2, or a frame is too large. */
export type Refusal = "preface" | "size";

/** Splits a connection's input into frames. At most one incomplete frame is kept. */
export class FrameReader {
  #held: Uint8Array = new Uint8Array();
  #isBegun = false;
  /** Number of complete frames. */
  #frames = 0;

  /** Number of the incomplete frame; undefined if there is none. */
  get unfinished(): number | undefined {
    return this.#held.length === 0 ? undefined : this.#frames;
  }

  /** @param take called with each complete frame; returns false when no more are wanted */
  push(piece: Uint8Array, take: (frame: Frame) => boolean): Refusal | undefined {
    const bytes = this.#held.length === 0 ? piece : joined(this.#held, piece);
    let at = 0;
    if (!this.#isBegun) {
      if (!isPreface(bytes)) return "preface";
      if (bytes.length < preface.length) return this.#hold(bytes, 0);
      this.#isBegun = true;
      at = preface.length;
    }
    while (bytes.length - at >= headBytes) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      if (length > payloadBytesMax) return "size";
      const start = at + headBytes;
      const end = start + length;
      if (end > bytes.length) break;
      this.#frames += 1;
      const stream = numberAt(bytes, at + 5);
      if (!take({ type: bytes[at + 3]!, flags: bytes[at + 4]!, stream, bytes, start, end })) return undefined;
      at = end;
    }
    return this.#hold(bytes, at);
  }

  /** Copies the bytes: a view of a few of them would retain the whole piece. */
  #hold(bytes: Uint8Array, from: number): undefined {
    this.#held = from === bytes.length ? new Uint8Array() : bytes.slice(from);
    return undefined;
  }
}

function isPreface(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length, preface.length);
  for (let at = 0; at < length; at += 1) if (bytes[at] !== preface[at]) return false;
  return true;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(one.length + other.length);
  bytes.set(one);
  bytes.set(other, one.length);
  return bytes;
}

export function lengthOf({ end, start }: Frame): number {
  return end - start;
}

/** Returns the payload without padding and priority; undefined if those exceed the frame. */
export function contentOf({ bytes, end, flags, start, type }: Frame): Uint8Array | undefined {
  let from = start;
  let padding = 0;
  if ((flags & flag.padded) !== 0) {
    if (from === end) return undefined;
    padding = bytes[from]!;
    from += 1;
  }
  if (type === frameType.headers && (flags & flag.priority) !== 0) from += 5;
  return from + padding > end ? undefined : bytes.subarray(from, end - padding);
}
