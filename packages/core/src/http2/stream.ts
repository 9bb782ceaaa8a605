import { initialWindow } from "./frames.js";

/** A message whose bytes are made when there is room to send them: what waits of it is one piece. */
export interface LongMessage {
  /** Of all pieces together. */
  readonly length: number;
  /** To be gone through once; to make one is a bounded amount of work. */
  pieces(): Iterable<Uint8Array>;
}

/** What waits to be sent; `taken` is called when the last byte of it has been handed to the connection. */
export interface Waiting {
  bytes: Uint8Array;
  at: number;
  /** Of `bytes` and of what follows them. */
  left: number;
  readonly more: Iterator<Uint8Array>;
  readonly taken: (() => void) | undefined;
}

/** What hears of a request's content. */
export interface Receiver {
  /** The bytes are gone with the return: who needs them copies. */
  data(bytes: Uint8Array, isEnd: boolean): void;
  /** It is over: all has been sent, or it was reset, or its connection is at its end. Called once. */
  over(isComplete: boolean): void;
}

/** One request and its answer, as the connection sees it. */
export class Stream {
  readonly id: number;
  receiver: Receiver | undefined;
  /** No more comes. */
  isRemoteEnded = false;
  /** Nothing more is sent. */
  isOver = false;
  hasSentHead = false;

  /** So much may be sent. */
  sendWindow: number;
  readonly waiting: Waiting[] = [];
  /** Sent behind all that waits: it ends the stream. */
  trailers: Uint8Array | undefined;

  /** So much may come. */
  receiveWindow = initialWindow;
  /** Has been used up, and is not given back yet. */
  consumed = 0;

  constructor(id: number, sendWindow: number) {
    this.id = id;
    this.sendWindow = sendWindow;
  }
}
