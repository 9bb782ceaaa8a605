import { initialWindow } from "./frames.js";

/** A message whose bytes are made when there is room to send them: only one piece is buffered. */
export interface LongMessage {
  /** The length of all pieces together. */
  readonly length: number;
  /** Can be iterated once; each piece is a bounded amount of work. */
  pieces(): Iterable<Uint8Array>;
}

/** Queued output; `taken` is called when its last byte has been passed to the connection. */
export interface Waiting {
  bytes: Uint8Array;
  at: number;
  /** Of `bytes` and of what follows them. */
  left: number;
  readonly more: Iterator<Uint8Array>;
  readonly taken: (() => void) | undefined;
}

/** Receives a request's content. */
export interface Receiver {
  /** The bytes are valid during the call only. */
  data(bytes: Uint8Array, isEnd: boolean): void;
  /** The stream is over: sent completely, reset, or its connection has ended. Called once. */
  over(isComplete: boolean): void;
}

/** One request and its answer, as the connection sees it. */
export class Stream {
  readonly id: number;
  receiver: Receiver | undefined;
  /** The client has sent everything. */
  isRemoteEnded = false;
  /** Nothing more is sent. */
  isOver = false;
  hasSentHead = false;

  /** Bytes that may be sent. */
  sendWindow: number;
  readonly waiting: Waiting[] = [];
  /** Sent after all queued output, as the end of the stream. */
  trailers: Uint8Array | undefined;

  /** Bytes that may be received. */
  receiveWindow = initialWindow;
  /** Consumed, and not yet returned to the window. */
  consumed = 0;

  constructor(id: number, sendWindow: number) {
    this.id = id;
    this.sendWindow = sendWindow;
  }
}
