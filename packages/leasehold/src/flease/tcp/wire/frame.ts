import { FrameError } from "./frame-error.js";
import { greatest } from "../../../common/lists.js";

/** The kinds of frames. */
export const FrameKind = {
  hello: 1,
  welcome: 2,
  reject: 3,
  batch: 4,
  call: 5,
  answer: 6,
  proof: 7,
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** u32 length of what follows, u8 kind. */
export const FRAME_HEADER_BYTES = 5;

/** An unidentified peer gets little of our memory: a handshake is a few hundred bytes. */
export const HANDSHAKE_FRAME_BYTES_MAX = 64 * 1024;

/**
 * Bounds a WELCOME with the description of a cluster, for a client that dialed: 300 members with the
 * longest ids and addresses, founding members and those of a joint view.
 */
export const WELCOME_FRAME_BYTES_MAX = 512 * 1024;

/** A batch of 512 messages with long names is smaller; a sender begins another batch before this size. */
export const BATCH_FRAME_BYTES_MAX = 1024 * 1024;

/**
 * Clients' calls are small. Parsed JSON takes up to twenty times its size in memory, for each call of each
 * connection.
 */
export const CALL_FRAME_BYTES_MAX = 4 * 1024;

/**
 * Members announce their connections to each other, and send their view to everyone: a joint view of 300
 * members with the longest ids and addresses.
 */
export const MEMBER_CALL_FRAME_BYTES_MAX = 256 * 1024;

/** The largest answers are pages of lists: about a hundred resources with names, labels and data. */
export const ANSWER_FRAME_BYTES_MAX = 1024 * 1024;

/** Upper bound of the length prefix (kind and body) for each kind of frame. */
const lengthMaxOf: readonly number[] = [
  0,
  HANDSHAKE_FRAME_BYTES_MAX,
  HANDSHAKE_FRAME_BYTES_MAX,
  HANDSHAKE_FRAME_BYTES_MAX,
  BATCH_FRAME_BYTES_MAX,
  CALL_FRAME_BYTES_MAX,
  ANSWER_FRAME_BYTES_MAX,
  HANDSHAKE_FRAME_BYTES_MAX,
];

const LENGTH_MAX = greatest(lengthMaxOf);

/** Initial buffer for a frame whose end has not arrived yet. */
const PARTIAL_BYTES_MIN = 4 * 1024;

/** Called with each complete frame: its body is `bytes[start, end)`, valid during the call only. */
export type FrameSink = (kind: FrameKind, bytes: Buffer, start: number, end: number) => void;

/**
 * Splits a stream of bytes into frames. A frame within one chunk is delivered in place; one that spans
 * chunks is assembled in a buffer, which grows with what has arrived, not with what a length prefix
 * promises.
 */
export class FrameDecoder {
  readonly #sink: FrameSink;
  #partial: Buffer | undefined;
  #partialLength = 0;
  #stopped = false;
  #lengthMaxOf = lengthMaxOf;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Raises the bound for frames of this kind. */
  allow(kind: FrameKind, bytesMax: number): void {
    this.#lengthMaxOf = this.#lengthMaxOf.with(kind, bytesMax);
  }

  /** Number of bytes of an unfinished frame. */
  get pendingBytes(): number {
    return this.#partialLength;
  }

  /** Delivers nothing from here on, including the rest of the current chunk. */
  stop(): void {
    this.#stopped = true;
    this.#partial = undefined;
    this.#partialLength = 0;
  }

  /**
   * Decodes the next chunk, which stays the caller's.
   *
   * @throws FrameError `length` or `kind`, or the sink's error. The stream is unusable afterwards.
   */
  push(chunk: Buffer, length: number = chunk.length): void {
    let offset = this.#partialLength > 0 ? this.#complete(chunk, length) : 0;
    while (offset < length && !this.#stopped) {
      const frameBytes = frameBytesAt(chunk, offset, length, this.#lengthMaxOf);
      if (frameBytes === 0 || offset + frameBytes > length) {
        this.#keep(chunk, offset, length);
        return;
      }
      this.#emit(chunk, offset, frameBytes);
      offset += frameBytes;
    }
  }

  /** Copies the missing part of the unfinished frame from the chunk. Returns the number of bytes. */
  #complete(chunk: Buffer, length: number): number {
    let offset = 0;
    if (this.#partialLength < FRAME_HEADER_BYTES) {
      offset = Math.min(FRAME_HEADER_BYTES - this.#partialLength, length);
      this.#keep(chunk, 0, offset);
    }
    const frameBytes = frameBytesAt(this.#partial!, 0, this.#partialLength, this.#lengthMaxOf);
    if (frameBytes === 0) return offset;
    const take = Math.min(frameBytes - this.#partialLength, length - offset);
    this.#keep(chunk, offset, offset + take);
    offset += take;
    if (this.#partialLength === frameBytes) {
      const partial = this.#partial!;
      // Frames that span chunks come in bursts of large ones: a small buffer is kept, a large one released.
      if (partial.length > PARTIAL_BYTES_MIN) this.#partial = undefined;
      this.#partialLength = 0;
      this.#emit(partial, 0, frameBytes);
    }
    return offset;
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    const needed = this.#partialLength + (end - start);
    if (this.#partial === undefined || this.#partial.length < needed) {
      const grown = Buffer.allocUnsafeSlow(Math.max(PARTIAL_BYTES_MIN, 2 * needed));
      this.#partial?.copy(grown, 0, 0, this.#partialLength);
      this.#partial = grown;
    }
    chunk.copy(this.#partial, this.#partialLength, start, end);
    this.#partialLength = needed;
  }

  #emit(bytes: Buffer, offset: number, frameBytes: number): void {
    this.#sink(bytes[offset + 4] as FrameKind, bytes, offset + FRAME_HEADER_BYTES, offset + frameBytes);
  }
}

/**
 * The size of the frame that begins at `offset`, its prefix included; 0 while the prefix is incomplete. An
 * impossible length is refused as soon as its four bytes have arrived.
 */
function frameBytesAt(bytes: Buffer, offset: number, end: number, longest: readonly number[]): number {
  if (end - offset < 4) return 0;
  const length = bytes.readUInt32BE(offset);
  // A TLS record, of a handshake or an alert, in any version: its first bytes read as a length beyond every
  // bound.
  if (length >>> 16 === 0x1603 || length >>> 16 === 0x1503)
    throw new FrameError("tls", "the peer speaks TLS, and this side does not");
  if (length === 0 || length > LENGTH_MAX) throw new FrameError("length", `a frame of ${length} bytes`);
  if (end - offset < FRAME_HEADER_BYTES) return 0;
  const kind = bytes[offset + 4]!;
  const lengthMax = longest[kind] ?? 0;
  if (lengthMax === 0) throw new FrameError("kind", `a frame of kind ${kind}`);
  if (length > lengthMax) throw new FrameError("length", `a frame of kind ${kind} with ${length} bytes`);
  return 4 + length;
}
