import { initialWindow } from "./frames.js";

/** A message whose bytes are made when there is room to send them, so only one piece is buffered. */
export interface LongMessage {
  /** The total length of all pieces. */
  readonly length: number;
  /** Can be iterated once; each piece is a bounded amount of work. */
  pieces(): Iterable<Uint8Array>;
}

/** Queued output; `taken` is called when its last byte has been passed to the connection. */
export interface Waiting {
  bytes: Uint8Array;
  at: number;
  /** Bytes left to send: of `bytes`, and of the pieces after it. */
  left: number;
  readonly more: Iterator<Uint8Array>;
  readonly taken: (() => void) | undefined;
}

/** Receives a request's content. */
export interface Receiver {
  /** The bytes are valid only during the call. */
  data(bytes: Uint8Array, isEnd: boolean): void;
  /** The stream has ended: sent completely, reset, or its connection has ended. Called once. */
  over(isComplete: boolean): void;
}

/** One request and its answer, as the connection sees it. */
export class Stream {
  readonly id: number;
  receiver: Receiver | undefined;
  /** The client has sent the whole request. */
  isRemoteEnded = false;
  /** Nothing more is sent. */
  isOver = false;
  hasSentHead = false;

  /** Bytes that may be sent. */
  sendWindow: number;
  readonly waiting: Waiting[] = [];
  /** Sent after all queued output to end the stream. */
  trailers: Uint8Array | undefined;

  /** Bytes that may be received. */
  receiveWindow = initialWindow;
  /** Bytes consumed but not returned to the window yet. */
  consumed = 0;

  constructor(id: number, sendWindow: number) {
    this.id = id;
    this.sendWindow = sendWindow;
  }
}
