import { NumberMap } from "leasehold/common";
import { BlockReader, type Read } from "./block-reader.js";
import { Budget } from "./budget.js";
import { contentOf, type Frame, FrameReader, lengthOf } from "./frame-reader.js";
import {
  errorCode,
  type ErrorCode,
  flag,
  frameOf,
  frameType,
  headBytes,
  initialWindow,
  numberAt,
  setting,
  settingsFrame,
  windowMax,
} from "./frames.js";
import { CompressionError, tableBytesMax } from "./header-decoder.js";
import { areTrailers, type RequestHead } from "./request.js";
import { Sender } from "./sender.js";
import { Stream } from "./stream.js";

/** Bounds of one header block: compressed, and decompressed. */
const blockBytesMax = 64 * 1024;
const listBytesMax = 64 * 1024;

/**
 * The receive window of all streams together. It is replenished as soon as data arrives, since streams have
 * windows of their own.
 */
const connectionWindow = 1024 * 1024;

/** Bound of unread answers to pings and settings: beyond it the connection is closed. */
const unreadBytesMax = 256 * 1024;

/** The budget of requests that the client resets, or that are refused as malformed. */
const resetsMax = { burst: 2_000, perTick: 1_000 };
/** The budget of frames that demand an answer, or carry nothing. */
const idleFramesMax = { burst: 10_000, perTick: 5_000 };

/** Number of streams that may wait to be reset at the next tick; others are reset at once. */
const answeredMax = 1_024;

/** Ticks allowed for one frame, one header block, or the preface with the first settings. */
const slowTicksMax = 10;

/** A connection's ports. */
export interface ConnectionPorts {
  allocate(length: number): Uint8Array;
  /** Called when there is output after there was none. */
  made(): void;
  /** A request begins. It must get a receiver, or an answer at once. */
  request(stream: Stream, head: RequestHead): void;
}

interface Block {
  readonly stream: number;
  readonly isEnd: boolean;
  readonly parts: Uint8Array[];
  bytes: number;
}

/**
 * The server's side of one HTTP/2 connection (RFC 9113), without a socket or a clock: bytes come in by
 * `take`, frames go out by `send.take`, and `tick` is called once a second. Client input never makes it
 * throw: on protocol errors or abuse it sends GOAWAY and then `isOver` is true.
 */
export class Connection {
  readonly send: Sender;
  readonly #ports: ConnectionPorts;
  readonly #streamsMax: number;
  readonly #frames = new FrameReader();
  readonly #blocks = new BlockReader(listBytesMax);
  readonly #streams = new NumberMap<Stream>();
  readonly #resets = new Budget(resetsMax);
  readonly #idleFrames = new Budget(idleFramesMax);
  /** Streams that were answered before the request ended, and have to be reset. */
  readonly #answered = new Set<number>();
  /** An unfinished header block. */
  #block: Block | undefined;
  #lastStream = 0;
  /** The last stream that was accepted. */
  #lastTaken = 0;
  #receiveWindow = initialWindow;
  #hasSettings = false;
  /**
   * The part that was incomplete at the last tick: the settings, a frame (by its number), or a header block.
   */
  #unfinished: Block | number | "settings" | undefined;
  /** Number of ticks for which the same has been incomplete. */
  #slowTicks = 0;
  #isLeaving = false;
  #isOver = false;

  constructor(ports: ConnectionPorts, streamsMax: number) {
    this.#ports = ports;
    this.#streamsMax = streamsMax;
    this.send = new Sender({
      allocate: (length) => ports.allocate(length),
      made: () => ports.made(),
      ended: (stream) => this.#ended(stream),
      broken: (stream) => this.cut(stream, errorCode.internal),
    });
    this.send.frame(
      settingsFrame([
        [setting.streamsMax, streamsMax],
        [setting.listBytes, listBytesMax],
      ]),
    );
    this.#giveBack(connectionWindow - initialWindow);
  }

  /** Nothing more is read; pending output may still be sent. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Number of requests in progress. */
  get streams(): number {
    return this.#streams.size;
  }

  take(piece: Uint8Array): void {
    if (this.#isOver) return;
    const refusal = this.#frames.push(piece, this.#frame);
    if (refusal === "preface") this.#fail(errorCode.protocol);
    if (refusal === "size") this.#fail(errorCode.frameSize);
    if (this.#receiveWindow < connectionWindow / 2) this.#giveBack(connectionWindow - this.#receiveWindow);
  }

  /** Called once a second. */
  tick(): void {
    if (this.#isOver) return;
    this.#resets.refill();
    this.#idleFrames.refill();
    for (const stream of this.#answered) this.send.reset(stream, errorCode.none);
    this.#answered.clear();
    const unfinished = this.#hasSettings ? (this.#block ?? this.#frames.unfinished) : "settings";
    if (unfinished !== this.#unfinished) this.#slowTicks = 0;
    this.#unfinished = unfinished;
    if (unfinished !== undefined) this.#slowTicks += 1;
    if (this.#slowTicks > slowTicksMax) this.#fail(errorCode.enhanceYourCalm);
  }

  /** Drains: accepts no new requests, and is over when those in progress have been answered. */
  leave(): void {
    if (this.#isOver || this.#isLeaving) return;
    this.#isLeaving = true;
    this.#goAway(errorCode.none);
    this.#overWhenDone();
  }

  /** The socket is closed, or is to be closed. */
  close(): void {
    this.#isOver = true;
    for (const stream of this.#streams.values()) this.#forget(stream, false);
  }

  /** A refused request counts against the client's budget like a reset one, as each was begun. */
  #refuse(id: number, code: ErrorCode): ErrorCode | undefined {
    this.send.reset(id, code);
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#forget(stream, false);
    return this.#resets.spend() ? undefined : errorCode.enhanceYourCalm;
  }

  /** Resets the stream, and drops what it has not sent. */
  cut(stream: Stream, code: ErrorCode): void {
    if (stream.isOver) return;
    this.send.reset(stream.id, code);
    this.#forget(stream, false);
  }

  /** The stream's content was consumed: widens its window by as much. */
  consumed(stream: Stream, bytes: number): void {
    stream.consumed += bytes;
    if (stream.isRemoteEnded || stream.isOver || stream.consumed < initialWindow / 2) return;
    this.send.frame(frameOf(frameType.windowUpdate, 0, stream.id, stream.consumed));
    stream.receiveWindow += stream.consumed;
    stream.consumed = 0;
  }

  #giveBack(bytes: number): void {
    this.send.frame(frameOf(frameType.windowUpdate, 0, 0, bytes));
    this.#receiveWindow += bytes;
  }

  #ended(stream: Stream): void {
    if (!stream.isRemoteEnded) this.#endLater(stream.id);
    this.#forget(stream, true);
  }

  /**
   * Resets the stream of an answered request at the next tick, since nobody needs the rest of the request.
   * Not at once: clients on Node that are still writing lose an answer that arrives together with its reset.
   */
  #endLater(stream: number): void {
    if (this.#answered.size < answeredMax) this.#answered.add(stream);
    else this.send.reset(stream, errorCode.none);
  }

  #forget(stream: Stream, isComplete: boolean): void {
    if (stream.isOver) return;
    stream.isOver = true;
    this.#streams.delete(stream.id);
    this.send.forget(stream);
    stream.receiver?.over(isComplete);
    if (this.#isLeaving) this.#overWhenDone();
  }

  #overWhenDone(): void {
    if (this.#streams.size === 0) this.#isOver = true;
  }

  #fail(code: ErrorCode): void {
    if (this.#isOver) return;
    this.#goAway(code);
    this.close();
  }

  #goAway(code: ErrorCode): void {
    this.send.frame(frameOf(frameType.goAway, 0, 0, this.#lastTaken, code));
  }

  readonly #frame = (frame: Frame): boolean => {
    const code = this.#checked(frame);
    if (code !== undefined) this.#fail(code);
    else if (this.send.madeBytes > unreadBytesMax) this.#fail(errorCode.enhanceYourCalm);
    return !this.#isOver;
  };

  #checked(frame: Frame): ErrorCode | undefined {
    if (!this.#hasSettings && frame.type !== frameType.settings) return errorCode.protocol;
    // Section 4.3: nothing comes between the parts of a header block.
    if (this.#block !== undefined && frame.type !== frameType.continuation) return errorCode.protocol;
    return this.#handle(frame);
  }

  /** @returns an error that ends the connection */
  #handle(frame: Frame): ErrorCode | undefined {
    switch (frame.type) {
      case frameType.data:
        return this.#data(frame);
      case frameType.headers:
        return this.#headers(frame);
      case frameType.continuation:
        return this.#continuation(frame);
      case frameType.resetStream:
        return this.#resetStream(frame);
      case frameType.settings:
        return this.#settings(frame);
      case frameType.ping:
        return this.#ping(frame);
      case frameType.windowUpdate:
        return this.#windowUpdate(frame);
      case frameType.pushPromise:
        return errorCode.protocol;
      case frameType.priority:
        if (frame.stream === 0) return errorCode.protocol;
        if (lengthOf(frame) !== 5) return errorCode.frameSize;
        return this.#idle();
      case frameType.goAway:
        return frame.stream === 0 ? this.#idle() : errorCode.protocol;
      default:
        return this.#idle();
    }
  }

  #idle(): ErrorCode | undefined {
    return this.#idleFrames.spend() ? undefined : errorCode.enhanceYourCalm;
  }

  #data(frame: Frame): ErrorCode | undefined {
    const length = lengthOf(frame);
    if (this.#isNew(frame.stream)) return errorCode.protocol;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return errorCode.flowControl;
    const content = contentOf(frame);
    if (content === undefined) return errorCode.protocol;
    const isEnd = (frame.flags & flag.endStream) !== 0;
    if (length === 0 && !isEnd && !this.#idleFrames.spend()) return errorCode.enhanceYourCalm;
    const stream = this.#streams.get(frame.stream);
    // The stream has ended here, but the client doesn't know that yet.
    if (stream === undefined) {
      if (isEnd) this.#answered.delete(frame.stream);
      return undefined;
    }
    if (stream.isRemoteEnded) return this.#refuse(stream.id, errorCode.streamClosed);
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) return this.#refuse(stream.id, errorCode.flowControl);
    if (isEnd) stream.isRemoteEnded = true;
    else if (content.length < length) this.consumed(stream, length - content.length);
    stream.receiver?.data(content, isEnd);
    return undefined;
  }

  #headers(frame: Frame): ErrorCode | undefined {
    const { stream } = frame;
    if (stream % 2 === 0) return errorCode.protocol;
    const part = contentOf(frame);
    if (part === undefined) return errorCode.protocol;
    const isEnd = (frame.flags & flag.endStream) !== 0;
    if ((frame.flags & flag.endHeaders) !== 0) return this.#whole(stream, isEnd, part);
    this.#block = { stream, isEnd, parts: [part.slice()], bytes: part.length };
    return undefined;
  }

  #continuation(frame: Frame): ErrorCode | undefined {
    const block = this.#block;
    if (block === undefined || frame.stream !== block.stream) return errorCode.protocol;
    const part = frame.bytes.slice(frame.start, frame.end);
    block.parts.push(part);
    block.bytes += part.length;
    if (block.bytes > blockBytesMax || !this.#idleFrames.spend()) return errorCode.enhanceYourCalm;
    if ((frame.flags & flag.endHeaders) === 0) return undefined;
    this.#block = undefined;
    const whole = new Uint8Array(block.bytes);
    let at = 0;
    for (const each of block.parts) {
      whole.set(each, at);
      at += each.length;
    }
    return this.#whole(block.stream, block.isEnd, whole);
  }

  #whole(id: number, isEnd: boolean, block: Uint8Array): ErrorCode | undefined {
    try {
      if (!this.#isNew(id)) return this.#trailers(id, isEnd, block);
      this.#lastStream = id;
      return this.#begin(id, isEnd, this.#blocks.head(block));
    } catch (error) {
      if (error instanceof CompressionError) return errorCode.compression;
      throw error;
    }
  }

  #begin(id: number, isEnd: boolean, head: Read): ErrorCode | undefined {
    // Requests after GOAWAY are ignored: the client knows that it may retry elsewhere.
    if (this.#isLeaving) return undefined;
    this.#lastTaken = id;
    if (head === "malformed") return this.#refuse(id, errorCode.protocol);
    if (head === "too large") return this.#refuse(id, errorCode.enhanceYourCalm);
    if (this.#streams.size >= this.#streamsMax) return this.#refuse(id, errorCode.refusedStream);
    const stream = new Stream(id, this.send.initialWindow);
    stream.isRemoteEnded = isEnd;
    this.#streams.set(id, stream);
    this.#ports.request(stream, head);
    return undefined;
  }

  #trailers(id: number, isEnd: boolean, block: Uint8Array): ErrorCode | undefined {
    const { fields, isTooLarge } = this.#blocks.fields(block);
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#answered.delete(id);
      return this.#idle();
    }
    if (stream.isRemoteEnded) return errorCode.streamClosed;
    if (!isEnd || isTooLarge || !areTrailers(fields)) return this.#refuse(id, errorCode.protocol);
    stream.isRemoteEnded = true;
    stream.receiver?.data(new Uint8Array(), true);
    return undefined;
  }

  #resetStream(frame: Frame): ErrorCode | undefined {
    if (this.#isNew(frame.stream)) return errorCode.protocol;
    if (lengthOf(frame) !== 4) return errorCode.frameSize;
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) {
      this.#answered.delete(frame.stream);
      return this.#idle();
    }
    this.#forget(stream, false);
    // No abuse: a client ends a stream like this once it has the answer it wanted. etcd's Go client does so
    // for each single keep-alive.
    if (stream.hasSentHead) return undefined;
    return this.#resets.spend() ? undefined : errorCode.enhanceYourCalm;
  }

  #settings({ bytes, end, flags, start, stream }: Frame): ErrorCode | undefined {
    if (stream !== 0) return errorCode.protocol;
    if ((flags & flag.ack) !== 0) {
      if (!this.#hasSettings) return errorCode.protocol;
      return start === end ? this.#idle() : errorCode.frameSize;
    }
    if ((end - start) % 6 !== 0) return errorCode.frameSize;
    this.#hasSettings = true;
    // Each change visits all streams, so of many in one frame only the last is applied.
    let window: number | undefined;
    for (let at = start; at < end; at += 6) {
      const id = (bytes[at]! << 8) | bytes[at + 1]!;
      const value = numberOf(bytes, at + 2);
      const code = this.#set(id, value);
      if (code !== undefined) return code;
      if (id === setting.window) window = value;
    }
    if (window !== undefined) {
      const code = this.send.setInitialWindow(window, this.#streams.values());
      if (code !== undefined) return code;
    }
    this.send.frame(frameOf(frameType.settings, flag.ack, 0));
    return this.#idle();
  }

  /** The other settings have no effect here: we send small frames and few headers, and use no table. */
  #set(id: number, value: number): ErrorCode | undefined {
    if (id === setting.window && value > windowMax) return errorCode.flowControl;
    if (id === setting.tableBytes && value < tableBytesMax) this.send.useNoTable();
    if (id === setting.frameBytes && (value < 16_384 || value > 16_777_215)) return errorCode.protocol;
    if (id === setting.push && value > 1) return errorCode.protocol;
    return undefined;
  }

  #ping({ bytes, end, flags, start, stream }: Frame): ErrorCode | undefined {
    if (stream !== 0) return errorCode.protocol;
    if (end - start !== 8) return errorCode.frameSize;
    if ((flags & flag.ack) === 0) {
      const answer = frameOf(frameType.ping, flag.ack, 0, 0, 0);
      answer.set(bytes.subarray(start, end), headBytes);
      this.send.frame(answer);
      if (this.send.takeOwedPing()) return undefined;
    }
    return this.#idle();
  }

  #windowUpdate(frame: Frame): ErrorCode | undefined {
    if (lengthOf(frame) !== 4) return errorCode.frameSize;
    const by = numberAt(frame.bytes, frame.start);
    if (frame.stream === 0) return this.send.widen(undefined, by);
    if (this.#isNew(frame.stream)) return errorCode.protocol;
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) return undefined;
    const code = this.send.widen(stream, by);
    return code === undefined ? undefined : this.#refuse(stream.id, code);
  }

  /** No request has had this number or a later one. */
  #isNew(stream: number): boolean {
    return stream === 0 || stream > this.#lastStream;
  }
}

/** All 32 bits. */
function numberOf(bytes: Uint8Array, at: number): number {
  return numberAt(bytes, at) + (bytes[at]! >= 0x80 ? 2 ** 31 : 0);
}
