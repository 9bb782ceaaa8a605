import type { LongMessage } from "../../../http2/stream.js";

/** gRPC's codes, as far as the layer itself answers with them. */
export const statusCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
} as const;

/** What a call ends with that has failed. */
export interface Status {
  readonly code: number;
  readonly details: string;
}

/** Who is at the other end of a connection. */
export interface Peer {
  /** No two connections at a time have the same. */
  readonly address: string;
  /** Of the certificate that it has shown; empty if it has shown none. */
  readonly commonName: string;
}

/** What a client says beside its request, by names in lower case. */
export class Metadata {
  readonly #fields: ReadonlyMap<string, readonly string[]>;

  constructor(fields: ReadonlyMap<string, readonly string[]>) {
    this.#fields = fields;
  }

  get(name: string): readonly string[] {
    return this.#fields.get(name) ?? [];
  }
}

/** Of an answer that cannot be encoded. */
function notEncoded(error: unknown): Status {
  const details = `grpc: error marshalling response: ${(error as Error).message}`;
  return { code: statusCode.internal, details };
}

/** How what a call says comes to its client. */
export interface Carrier {
  /** The only message, and the end. */
  answer(message: Encoded): void;
  /** @param taken called when the connection has taken all of it; never, if the call is over before */
  message(message: Encoded, taken: () => void): void;
  /** Without a status: all went well. */
  end(status: Status | undefined): void;
  /** An answer that is under way ends in its middle. */
  cut(status: Status): void;
  /** So many bytes of requests have been used: as many more may come. */
  consumed(bytes: number): void;
}

/** What is said, as bytes. */
export type Encoded = LongMessage | Uint8Array;

/** What a call begins with. */
export interface CallBase {
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** On the steady clock, ms; infinite if the client has set none. */
  readonly deadlineMs: number;
  readonly carrier: Carrier;
}

/** What is the same for calls with one answer and with many. */
abstract class Call {
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** On the steady clock, ms; infinite if the client has set none. */
  readonly deadlineMs: number;
  /** What it has ended with, once it is over. */
  code: number = statusCode.cancelled;
  /** It has been answered and that was taken, or its client waits no more. */
  isOver = false;
  protected readonly carrier: Carrier;
  readonly #over: (() => void)[] = [];

  constructor({ carrier, deadlineMs, metadata, peer }: CallBase) {
    this.metadata = metadata;
    this.peer = peer;
    this.deadlineMs = deadlineMs;
    this.carrier = carrier;
  }

  /** Called once, when the call is over; at once if it is. */
  whenOver(listener: () => void): void {
    if (this.isOver) listener();
    else this.#over.push(listener);
  }

  /** Ends it with an error. */
  abstract fail(status: Status): void;

  /** Of the carrier: nothing more is heard of this call. */
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

  /** Its client has not taken all of the answer, and gets no more. */
  cut(status: Status): void {
    if (!this.isOver) this.carrier.cut(status);
  }

  fail(status: Status): void {
    this.answer(status);
  }
}

/** Where the requests of a stream come from. */
export interface Requests {
  /** Nothing: there is none for now. */
  next(): unknown;
  /** No more will come than `next` has. */
  isEnded(): boolean;
}

/** What a client has not taken: who writes more is told to wait. */
const unsentMax = 16;

/** Many requests, many answers, or both. */
export class ServerStream extends Call {
  /** The first and only one, where the client says no more than that. */
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

  /** Whether more can be said. */
  get writable(): boolean {
    return !this.isOver && !this.#isEnded;
  }

  /**
   * @param taken called when the connection has taken it
   * @returns false: the client is behind; `whenDrained` tells when it is not
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

  /** Called once, when the client has taken most of what there was. */
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

  /** From now on requests are taken, and at last their end. */
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

  /** Of the carrier: more may have come, or the end. */
  flow(): void {
    // Who takes a request may pause and resume.
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

  /** A mistake in what takes a request ends this stream, and nothing else. */
  #taken(take: (request: unknown) => void, request: unknown): void {
    try {
      take(request);
    } catch (error) {
      this.fail({ code: statusCode.unknown, details: (error as Error).message });
    }
  }
}

/** With an error, or with an answer. */
export type Answer = (error: Status | null, message?: unknown) => void;
export type UnaryHandler = (call: UnaryCall, callback: Answer) => void;
export type StreamHandler = (stream: ServerStream) => void;
/** By the name of the method. */
export type Handlers = Readonly<Record<string, UnaryHandler | StreamHandler>>;

/** A method as the server sees it. */
export interface Method {
  readonly kind: "bidi_streaming" | "client_streaming" | "server_streaming" | "unary";
  readonly handler: UnaryHandler | StreamHandler;
  /** Throws if it is no request. */
  readonly decode: (bytes: Uint8Array) => unknown;
  readonly encode: (message: unknown) => Encoded;
}
