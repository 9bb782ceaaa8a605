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
import { type Messages, prefixBytes } from "./message-reader.js";

/** A call from its first message to its end: passes the client's requests to the method's handler. */
export class Exchange {
  readonly #method: Method;
  readonly #base: CallBase;
  readonly #messages: Messages;
  #call: ServerStream | UnaryCall | undefined;
  /** The only request, for a method with one. */
  #request: Uint8Array | undefined;
  #isRemoteEnded = false;
  /** Further input is ignored. */
  #isDeaf = false;

  /** @param messages the client's input */
  constructor(method: Method, base: CallBase, messages: Messages) {
    this.#method = method;
    this.#base = base;
    this.#messages = messages;
    if (this.isOfMany) this.#begin(undefined);
  }

  get deadlineMs(): number {
    return this.#base.deadlineMs;
  }

  /** Whether the method has many requests: each is taken when the handler is ready for it. */
  get isOfMany(): boolean {
    const { kind } = this.#method;
    return kind === "bidi_streaming" || kind === "client_streaming";
  }

  /** Whether further input is ignored. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  /** More input has arrived. */
  more(): void {
    if (this.#isDeaf) return;
    if (this.#call instanceof ServerStream) {
      this.#call.flow();
      return;
    }
    for (let next = this.#next(); next !== undefined; next = this.#next()) this.only(next);
  }

  /** The whole request has arrived, for a method with one. */
  only(message: Uint8Array): void {
    if (this.#request === undefined) this.#request = message;
    else this.fail({ code: statusCode.unimplemented, details: "more than one request" });
  }

  /** The client half-closes: everything before has been delivered. */
  remoteEnded(): void {
    if (this.#isDeaf) return;
    this.#isRemoteEnded = true;
    if (this.#call instanceof ServerStream) this.#call.flow();
    else if (this.#request === undefined)
      this.fail({ code: statusCode.internal, details: "there is no whole request" });
    else {
      const request = this.#decoded(this.#request);
      this.#request = undefined;
      if (request !== undefined) this.#begin(request);
    }
  }

  #next(): Uint8Array | undefined {
    if (this.#isDeaf) return undefined;
    const next = this.#messages.next();
    if (next === undefined || next instanceof Uint8Array) return next;
    this.fail(next);
    return undefined;
  }

  /** The source of a stream's requests. */
  readonly #nextRequest = (): unknown => {
    const bytes = this.#next();
    if (bytes === undefined) return undefined;
    this.#base.carrier.consumed(bytes.length + prefixBytes);
    return this.#decoded(bytes);
  };

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
        const from = { next: this.#nextRequest, isEnded: () => this.#isRemoteEnded };
        const call = new ServerStream(this.#base, request, encode, from);
        this.#call = call;
        (handler as StreamHandler)(call);
      }
    } catch (error) {
      this.fail({ code: statusCode.unknown, details: (error as Error).message });
    }
  }

  /** Ends the call with an error, whatever its handler is doing. */
  fail(status: Status): void {
    if (this.#isDeaf) return;
    this.#isDeaf = true;
    if (this.#call === undefined) this.#base.carrier.end(status);
    else this.#call.fail(status);
  }

  /** Called by the carrier when everything has been sent, or the client is gone. */
  over(isComplete: boolean): void {
    this.#isDeaf = true;
    this.#call?.over(isComplete);
  }
}
