import {
  type CallBase,
  type Method,
  ServerStream,
  type Status,
  statusCode,
  type StreamHandler,
  UnaryCall,
  type UnaryHandler,
} from "./call.js";

/** A call from its first message to its end: what its client says goes to the handler of its method. */
export class Exchange {
  readonly #method: Method;
  readonly #base: CallBase;
  #call: ServerStream | UnaryCall | undefined;
  /** The only one, of a client that says one. */
  #request: Uint8Array | undefined;
  /** Nothing that comes is of use any more. */
  #isDeaf = false;

  constructor(method: Method, base: CallBase) {
    this.#method = method;
    this.#base = base;
    if (this.#isOfMany) this.#begin(undefined);
  }

  get deadlineMs(): number {
    return this.#base.deadlineMs;
  }

  get #isOfMany(): boolean {
    const { kind } = this.#method;
    return kind === "bidi_streaming" || kind === "client_streaming";
  }

  /** Whether what comes is given back when its handler takes it, and not before. */
  get isBounded(): boolean {
    return this.#call instanceof ServerStream;
  }

  message(bytes: Uint8Array): void {
    if (this.#isDeaf) return;
    if (this.#call instanceof ServerStream) {
      const request = this.#decoded(bytes);
      if (request !== undefined) this.#call.take(request, bytes.length);
    } else if (this.#request === undefined) this.#request = bytes;
    else this.fail({ code: statusCode.unimplemented, details: "more than one request" });
  }

  /** The client says no more. */
  remoteEnded(): void {
    if (this.#isDeaf) return;
    if (this.#call instanceof ServerStream) this.#call.remoteEnded();
    else if (this.#request === undefined)
      this.fail({ code: statusCode.internal, details: "there is no request" });
    else {
      const request = this.#decoded(this.#request);
      this.#request = undefined;
      if (request !== undefined) this.#begin(request);
    }
  }

  #decoded(message: Uint8Array): unknown {
    try {
      return this.#method.decode(message);
    } catch (error) {
      const details = `grpc: error unmarshalling request: ${(error as Error).message}`;
      this.fail({ code: statusCode.internal, details });
      return undefined;
    }
  }

  #begin(request: unknown): void {
    const { encode, handler, kind } = this.#method;
    try {
      if (kind === "unary") {
        const call = new UnaryCall(this.#base, request, encode);
        this.#call = call;
        (handler as UnaryHandler)(call, call.answer);
      } else {
        const call = new ServerStream(this.#base, request, encode);
        this.#call = call;
        (handler as StreamHandler)(call);
      }
    } catch (error) {
      this.fail({ code: statusCode.unknown, details: (error as Error).message });
    }
  }

  /** Ends it with an error, whatever its handler is doing. */
  fail(status: Status): void {
    if (this.#isDeaf) return;
    this.#isDeaf = true;
    if (this.#call === undefined) this.#base.carrier.end(status);
    else this.#call.fail(status);
  }

  /** Of the carrier: all has been sent, or its client waits no more. */
  over(isComplete: boolean): void {
    this.#isDeaf = true;
    this.#call?.over(isComplete);
  }
}
