import type { LongMessage } from "../../../http2/stream.js";

/** The gRPC codes with which this layer itself answers. */
export const statusCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
} as const;

/** The status of a failed call. */
export interface Status {
  readonly code: number;
  readonly details: string;
}

/** A service's error, with a gRPC code. */
export interface CodedError extends Error {
  readonly code: number;
}

export function statusOf({ code, message }: CodedError): Status {
  return { code, details: message };
}

/** The peer of a connection. */
export interface Peer {
  /** Unique among present connections. */
  readonly address: string;
  /** The common name in its certificate; empty without one. */
  readonly commonName: string;
}

/** A client's metadata, by names in lower case. */
export class Metadata {
  readonly #fields: ReadonlyMap<string, readonly string[]>;

  constructor(fields: ReadonlyMap<string, readonly string[]>) {
    this.#fields = fields;
  }

  get(name: string): readonly string[] {
    return this.#fields.get(name) ?? [];
  }
}

/** The status of a call whose answer cannot be encoded. */
function notEncoded(error: unknown): Status {
  const details = `grpc: error marshalling response: ${(error as Error).message}`;
  return { code: statusCode.internal, details };
}

/** Carries a call's output to its client. */
export interface Carrier {
  /** Sends the only message, and the end. */
  answer(message: Encoded): void;
  /**
   * @param taken called when the connection has accepted the whole message; never, if the call is over before
   *   that
   */
  message(message: Encoded, taken: () => void): void;
  /** Without a status: success. */
  end(status: Status | undefined): void;
  /** Cuts off an answer in progress. */
  cut(status: Status): void;
  /** Bytes of requests were consumed: widens the window by as much. */
  consumed(bytes: number): void;
}

/** An encoded message. */
export type Encoded = LongMessage | Uint8Array;

/** The head of a call. */
export interface CallBase {
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** Reading of the steady clock, ms; infinite if the client set no deadline. */
  readonly deadlineMs: number;
  readonly carrier: Carrier;
}

/** Common part of calls with one answer and with many. */
abstract class Call {
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** Reading of the steady clock, ms; infinite if the client set no deadline. */
  readonly deadlineMs: number;
  /** Its final status code. */
  code: number = statusCode.cancelled;
  /** The answer was sent, or the client is gone. */
  isOver = false;
  protected readonly carrier: Carrier;
  readonly #over: (() => void)[] = [];

  constructor({ carrier, deadlineMs, metadata, peer }: CallBase) {
    this.metadata = metadata;
    this.peer = peer;
    this.deadlineMs = deadlineMs;
    this.carrier = carrier;
  }

  /** Calls the listener once, when the call is over; at once if it is already. */
  whenOver(listener: () => void): void {
    if (this.isOver) listener();
    else this.#over.push(listener);
  }

  /** Ends the call with an error. */
  abstract fail(status: Status): void;

  /** Called by the carrier at the end of this call. */
  over(isComplete: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    if (!isComplete) this.code = statusCode.cancelled;
    for (const listener of this.#over) listener();
  }
}

/** One request, and one answer by the callback of its handler. */
export class UnaryCall extends Call {
  readonly request: unknown;
  readonly #encode: Method["encode"];
  #isAnswered = false;

  constructor(base: CallBase, request: unknown, encode: Method["encode"]) {
    super(base);
    this.request = request;
    this.#encode = encode;
  }

  readonly answer: Answer = (error, message) => {
    if (this.#isAnswered || this.isOver) return;
    this.#isAnswered = true;
    if (error === null) this.#answer(message);
    else this.#fail(error);
  };

  #answer(message: unknown): void {
    let encoded: Encoded;
    try {
      encoded = this.#encode(message);
    } catch (failure) {
      this.#fail(notEncoded(failure));
      return;
    }
    this.code = statusCode.ok;
    this.carrier.answer(encoded);
  }

  #fail(status: Status): void {
    this.code = status.code;
    this.carrier.end(status);
  }

  /** Cuts off the answer if its client has not read all of it. */
  cut(status: Status): void {
    if (!this.isOver) this.carrier.cut(status);
  }

  fail(status: Status): void {
    this.answer(status);
  }
}

/** The source of a stream's requests. */
export interface Requests {
  /** Returns undefined if there is no request for now. */
  next(): unknown;
  /** Whether no more follow those returned by `next`. */
  isEnded(): boolean;
}

/** Bound of unsent messages; beyond it `write` returns false. */
const unsentMax = 16;

/** A call with many requests, many answers, or both. */
export class ServerStream extends Call {
  /** The only request, for a method with one. */
  readonly request: unknown;
  readonly #encode: Method["encode"];
  #isEnded = false;
  #unsent = 0;
  #drained: (() => void) | undefined;
  #take: ((request: unknown) => void) | undefined;
  #ended: (() => void) | undefined;
  #isPaused = false;
  #isFlowing = false;
  readonly #from: Requests;

  constructor(base: CallBase, request: unknown, encode: Method["encode"], from: Requests) {
    super(base);
    this.request = request;
    this.#encode = encode;
    this.#from = from;
  }

  /** Whether more messages can be written. */
  get writable(): boolean {
    return !this.isOver && !this.#isEnded;
  }

  /**
   * @param taken called when the connection has accepted the message
   * @returns false: back-pressure, until `whenDrained`
   */
  write(message: unknown, taken?: () => void): boolean {
    if (!this.writable) return true;
    let encoded: Encoded;
    try {
      encoded = this.#encode(message);
    } catch (error) {
      this.fail(notEncoded(error));
      return true;
    }
    this.#unsent += 1;
    this.carrier.message(encoded, () => {
      this.#unsent -= 1;
      taken?.();
      if (this.#unsent > unsentMax / 2) return;
      const drained = this.#drained;
      this.#drained = undefined;
      drained?.();
    });
    return this.#unsent < unsentMax;
  }

  /** Calls the listener once, when the client has read most of the output. */
  whenDrained(listener: () => void): void {
    this.#drained = listener;
  }

  end(): void {
    this.#end(undefined);
  }

  fail(status: Status): void {
    this.#end(status);
  }

  #end(status: Status | undefined): void {
    if (!this.writable) return;
    this.#isEnded = true;
    this.code = status?.code ?? statusCode.ok;
    this.carrier.end(status);
  }

  /** Delivers requests from now on, and finally their end. */
  listen(take: (request: unknown) => void, ended: () => void): void {
    this.#take = take;
    this.#ended = ended;
    this.flow();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.flow();
  }

  /** Called by the carrier when more requests or the end may have arrived. */
  flow(): void {
    // A request's handler may pause and resume, and so lead here again.
    if (this.#isFlowing || this.#take === undefined) return;
    this.#isFlowing = true;
    let isEmpty = false;
    while (!isEmpty && !this.#isPaused && this.writable) {
      const request = this.#from.next();
      if (request === undefined) isEmpty = true;
      else this.#taken(this.#take, request);
    }
    this.#isFlowing = false;
    if (!isEmpty || !this.#from.isEnded() || !this.writable) return;
    const ended = this.#ended;
    this.#ended = undefined;
    ended?.();
  }

  /** An error in a request's handler ends this stream, and nothing else. */
  #taken(take: (request: unknown) => void, request: unknown): void {
    try {
      take(request);
    } catch (error) {
      this.fail({ code: statusCode.unknown, details: (error as Error).message });
    }
  }
}

/** Answers with an error or a message. */
export type Answer = (error: Status | null, message?: unknown) => void;
export type UnaryHandler = (call: UnaryCall, callback: Answer) => void;
export type StreamHandler = (stream: ServerStream) => void;
/** Handlers by method name. */
export type Handlers = Readonly<Record<string, UnaryHandler | StreamHandler>>;

/** A method as the server sees it. */
export interface Method {
  readonly kind: "bidi_streaming" | "client_streaming" | "server_streaming" | "unary";
  readonly handler: UnaryHandler | StreamHandler;
  /** Throws an error for invalid bytes. */
  readonly decode: (bytes: Uint8Array) => unknown;
  readonly encode: (message: unknown) => Encoded;
}
