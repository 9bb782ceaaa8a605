import { NumberMap } from "leasehold/common";
import {
  errorCode,
  type ErrorCode,
  flag,
  frameOf,
  frameType,
  headBytes,
  initialWindow,
  payloadBytesMax,
  putHead,
  windowMax,
} from "./frames.js";
import type { LongMessage, Stream, Waiting } from "./stream.js";

/** Length of a gRPC message's head: compression flag and message length. */
export const prefixBytes = 5;

/** Bound of output buffered for the socket; more waits in the streams. */
const madeBytesMax = 64 * 1024;

/** Messages up to this size are copied behind their heads; longer ones are sent uncopied. */
const copiedBytesMax = 2_048;

/** Bound of pings accepted in answer to earlier data. */
const pingsOwedMax = 1_000;

/** Sets the table's size to 0 (RFC 7541, section 6.3). */
const noTable = Uint8Array.of(0x20);

/** A sender's ports. */
export interface SenderPorts {
  allocate(length: number): Uint8Array;
  /** Called when there is output after there was none. */
  made(): void;
  /** The stream was sent completely. */
  ended(stream: Stream): void;
  /** The stream's output could not be made, so the stream cannot continue. */
  broken(stream: Stream): void;
}

/** Makes outgoing frames as windows and the socket have room; until then, output waits in its stream. */
export class Sender {
  readonly #ports: SenderPorts;
  #made: Uint8Array[] = [];
  #madeBytes = 0;
  #window = initialWindow;
  /** The window of new streams. */
  #initialWindow = initialWindow;
  /** Streams with output and room in their own windows; they take turns. */
  readonly #ready = new NumberMap<Stream>();
  /** Streams waiting for room in the connection's window. */
  readonly #blocked = new NumberMap<Stream>();
  #isPumping = false;
  /** Back-pressure: the socket accepts no more for now. */
  #isHeld = false;
  /** A smaller table has to be announced to the client. */
  #isTableToName = false;
  #isTableNamed = false;
  #pingsOwed = 0;

  constructor(ports: SenderPorts) {
    this.#ports = ports;
  }

  get initialWindow(): number {
    return this.#initialWindow;
  }

  get madeBytes(): number {
    return this.#madeBytes;
  }

  /** Whether a ping may answer our data: gRPC clients measure bandwidth that way. */
  takeOwedPing(): boolean {
    if (this.#pingsOwed === 0) return false;
    this.#pingsOwed -= 1;
    return true;
  }

  /** Call only if both windows have room for the frame. */
  #spend(stream: Stream, length: number): void {
    stream.sendWindow -= length;
    this.#window -= length;
    this.#pingsOwed = Math.min(pingsOwedMax, this.#pingsOwed + 1);
  }

  take(): readonly Uint8Array[] {
    const made = this.#made;
    this.#made = [];
    this.#madeBytes = 0;
    return made;
  }

  frame(bytes: Uint8Array): void {
    this.#made.push(bytes);
    this.#madeBytes += bytes.length;
    if (this.#made.length === 1) this.#ports.made();
  }

  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.pump();
  }

  /** Sends a complete answer. */
  answer(stream: Stream, head: Uint8Array, message: Uint8Array | LongMessage, trailers: Uint8Array): void {
    const length = prefixBytes + message.length;
    const hasRoom = length <= payloadBytesMax && length <= stream.sendWindow && length <= this.#window;
    const isAtOnce = hasRoom && !this.#isFull && !stream.hasSentHead && !this.#isTableToName;
    if (!isAtOnce || !(message instanceof Uint8Array)) {
      this.message(stream, head, message, undefined);
      this.end(stream, trailers);
      return;
    }
    this.#spend(stream, length);
    const bytes = this.#ports.allocate(3 * headBytes + head.length + length + trailers.length);
    putHead(bytes, 0, head.length, frameType.headers, flag.endHeaders, stream.id);
    bytes.set(head, headBytes);
    let at = headBytes + head.length;
    putHead(bytes, at, length, frameType.data, 0, stream.id);
    putPrefix(bytes, at + headBytes, message.length);
    at += headBytes + prefixBytes;
    bytes.set(message, at);
    at += message.length;
    putHead(bytes, at, trailers.length, frameType.headers, flag.endHeaders | flag.endStream, stream.id);
    bytes.set(trailers, at + headBytes);
    stream.hasSentHead = true;
    this.frame(bytes);
    this.#ports.ended(stream);
  }

  /** Sends a message on a stream; `head` precedes the first one. */
  message(
    stream: Stream,
    head: Uint8Array,
    message: Uint8Array | LongMessage,
    taken: (() => void) | undefined,
  ): void {
    if (stream.isOver || stream.trailers !== undefined) return;
    this.head(stream, head);
    if (message instanceof Uint8Array && this.#sendAtOnce(stream, message)) {
      this.#reportTaken(taken);
      return;
    }
    stream.waiting.push(this.#waiting(message, taken));
    this.#ready.set(stream.id, stream);
    this.pump();
  }

  /** Makes the queue entry of a message, with its prefix. */
  #waiting(message: Uint8Array | LongMessage, taken: (() => void) | undefined): Waiting {
    const isWhole = message instanceof Uint8Array;
    const isCopied = isWhole && message.length <= copiedBytesMax;
    const bytes = this.#ports.allocate(prefixBytes + (isCopied ? message.length : 0));
    putPrefix(bytes, 0, message.length);
    if (isCopied) bytes.set(message, prefixBytes);
    const rest = isCopied ? [] : isWhole ? [message] : message.pieces();
    return { bytes, at: 0, left: prefixBytes + message.length, more: rest[Symbol.iterator](), taken };
  }

  /** Output that the callback makes is sent later: sending it at once could recurse without bound. */
  #reportTaken(taken: (() => void) | undefined): void {
    if (taken === undefined) return;
    this.#isPumping = true;
    try {
      taken();
    } finally {
      this.#isPumping = false;
    }
    this.pump();
  }

  /** A short message with nothing queued before it is one frame, and is copied once. */
  #sendAtOnce(stream: Stream, message: Uint8Array): boolean {
    const length = prefixBytes + message.length;
    const hasRoom = length <= copiedBytesMax && length <= stream.sendWindow && length <= this.#window;
    if (!hasRoom || stream.waiting.length > 0 || this.#isPumping || this.#isFull) return false;
    this.#spend(stream, length);
    const bytes = this.#ports.allocate(headBytes + length);
    putHead(bytes, 0, length, frameType.data, 0, stream.id);
    putPrefix(bytes, headBytes, message.length);
    bytes.set(message, headBytes + prefixBytes);
    this.frame(bytes);
    return true;
  }

  head(stream: Stream, head: Uint8Array): void {
    if (stream.hasSentHead) return;
    stream.hasSentHead = true;
    this.#headers(stream, head, flag.endHeaders);
  }

  /** Ends the stream after its queued output. */
  end(stream: Stream, trailers: Uint8Array): void {
    if (stream.isOver || stream.trailers !== undefined) return;
    stream.trailers = trailers;
    this.#ready.set(stream.id, stream);
    this.pump();
  }

  /** Drops the stream's unsent output. */
  forget(stream: Stream): void {
    this.#ready.delete(stream.id);
    this.#blocked.delete(stream.id);
    stream.waiting.length = 0;
  }

  reset(stream: number, code: ErrorCode): void {
    this.frame(frameOf(frameType.resetStream, 0, stream, code));
  }

  /**
   * The client's table is smaller than the initial size, which the next header block must acknowledge (RFC
   * 7541, section 4.2). We use no table, and announcing size 0 once is enough.
   */
  useNoTable(): void {
    // The client may shrink its table several times before a block is sent.
    if (!this.#isTableNamed) this.#isTableToName = true;
    this.#isTableNamed = true;
  }

  /** Section 6.9.2. @returns an error of the connection */
  setInitialWindow(window: number, streams: Iterable<Stream>): ErrorCode | undefined {
    const change = window - this.#initialWindow;
    this.#initialWindow = window;
    for (const stream of streams) {
      stream.sendWindow += change;
      if (stream.sendWindow > windowMax) return errorCode.flowControl;
      if (change > 0) this.#wake(stream);
    }
    this.pump();
    return undefined;
  }

  /** @returns an error: of the stream, or without one, of the connection */
  widen(stream: Stream | undefined, by: number): ErrorCode | undefined {
    if (by === 0) return errorCode.protocol;
    const window = (stream?.sendWindow ?? this.#window) + by;
    if (window > windowMax) return errorCode.flowControl;
    if (stream === undefined) this.#window = window;
    else {
      stream.sendWindow = window;
      this.#wake(stream);
    }
    this.pump();
    return undefined;
  }

  /** Sends as much as there is room for: one frame of each stream in turn. */
  pump(): void {
    // Callbacks may queue more output: the running loop sends it.
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (!this.#isFull) {
        const next = this.#ready.first() ?? (this.#window > 0 ? this.#blocked.first() : undefined);
        if (next === undefined) break;
        this.#sendOf(next[1]);
      }
    } finally {
      this.#isPumping = false;
    }
  }

  #wake(stream: Stream): void {
    if (stream.waiting.length > 0 && !this.#blocked.has(stream.id)) this.#ready.set(stream.id, stream);
  }

  get #isFull(): boolean {
    return this.#isHeld || this.#madeBytes >= madeBytesMax;
  }

  /**
   * Sends one frame if the stream's window has room; otherwise the stream returns when its window is widened.
   */
  #sendOf(stream: Stream): void {
    this.#ready.delete(stream.id);
    this.#blocked.delete(stream.id);
    const next = stream.waiting[0];
    if (next === undefined) {
      if (stream.trailers !== undefined) this.#endNow(stream, stream.trailers);
      return;
    }
    if (stream.sendWindow <= 0) return;
    if (this.#window <= 0) {
      this.#blocked.set(stream.id, stream);
      return;
    }
    if (!hasBytes(next)) {
      this.#ports.broken(stream);
      return;
    }
    const room = Math.min(payloadBytesMax, stream.sendWindow, this.#window);
    const length = Math.min(next.bytes.length - next.at, room);
    this.#spend(stream, length);
    this.#data(stream, next.bytes.subarray(next.at, next.at + length));
    next.at += length;
    next.left -= length;
    const isDone = next.left === 0;
    if (isDone) stream.waiting.shift();
    if (stream.waiting.length > 0 || stream.trailers !== undefined) this.#ready.set(stream.id, stream);
    if (isDone) next.taken?.();
  }

  #endNow(stream: Stream, trailers: Uint8Array): void {
    this.#headers(stream, trailers, flag.endHeaders | flag.endStream);
    this.#ports.ended(stream);
  }

  #data(stream: Stream, payload: Uint8Array): void {
    const isCopied = payload.length <= copiedBytesMax;
    const bytes = this.#ports.allocate(headBytes + (isCopied ? payload.length : 0));
    putHead(bytes, 0, payload.length, frameType.data, 0, stream.id);
    if (isCopied) bytes.set(payload, headBytes);
    this.frame(bytes);
    if (!isCopied) this.frame(payload);
  }

  /** Our header blocks are short: each fits in one frame. */
  #headers(stream: Stream, block: Uint8Array, flags: number): void {
    const first = this.#isTableToName ? noTable : new Uint8Array();
    this.#isTableToName = false;
    const length = first.length + block.length;
    const bytes = this.#ports.allocate(headBytes + length);
    putHead(bytes, 0, length, frameType.headers, flags, stream.id);
    bytes.set(first, headBytes);
    bytes.set(block, headBytes + first.length);
    this.frame(bytes);
  }
}

/**
 * Makes the next piece if the one before has been sent. Returns false if there is none, or the pieces exceed
 * the announced length.
 */
function hasBytes(waiting: Waiting): boolean {
  try {
    while (waiting.left > 0 && waiting.at === waiting.bytes.length) {
      const next = waiting.more.next();
      if (next.done === true) return false;
      waiting.bytes = next.value;
      waiting.at = 0;
    }
  } catch {
    return false;
  }
  return waiting.bytes.length - waiting.at <= waiting.left;
}

function putPrefix(bytes: Uint8Array, at: number, length: number): void {
  bytes[at] = 0;
  bytes[at + 1] = length >>> 24;
  bytes[at + 2] = length >>> 16;
  bytes[at + 3] = length >>> 8;
  bytes[at + 4] = length;
}
