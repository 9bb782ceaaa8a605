import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type Carrier,
  type Encoded,
  Metadata,
  type Method,
  type Status,
  statusCode,
} from "../../wire/rpc/call.js";
import { Exchange } from "../../wire/rpc/exchange.js";
import { type Messages, prefixBytes } from "../../wire/rpc/message-reader.js";
import type { Caller } from "./calls.js";
import { LongAnswer } from "./encode.js";

const statusUnavailable = 14;

/**
 * Bound of requests not taken by a call's handler. An HTTP/1.1 client that keeps sending without reading is
 * disconnected.
 */
const askedBytesMax = 4 * 1024 * 1024;

/** The status of a failed call. */
export class CallFailed extends Error {
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.name = "CallFailed";
    this.code = code;
  }
}

type Input<Called extends DescMethod> = MessageInitShape<Called["input"]>;
type Output<Called extends DescMethod> = MessageShape<Called["output"]>;

/** A call in progress. */
export interface LocalCall<Called extends DescMethod> {
  send(request: Input<Called>): void;
  /** Half-close: no more requests. */
  end(): void;
  /** @param failure thrown by `answers` */
  cancel(failure?: CallFailed): void;
  /**
   * The answers. Throws `CallFailed` at the end if the call failed. Leaving the loop early cancels the call.
   */
  readonly answers: AsyncGenerator<Output<Called>, void>;
}

/**
 * An in-memory client of this server's own services. Features composed of several requests (locks, elections,
 * JSON) use the same path as every client, with the same bounds and rights.
 */
export class LocalClient {
  readonly #methodAt: (path: string) => Method | undefined;
  readonly #open = new Set<LocalCarrier>();
  #isClosed = false;

  /** @param methodAt returns the method at a path */
  constructor(methodAt: (path: string) => Method | undefined) {
    this.#methodAt = methodAt;
  }

  /** @throws CallFailed */
  async ask<Called extends DescMethod>(
    method: Called,
    request: Input<Called>,
    caller: Caller,
    signal?: AbortSignal,
  ): Promise<Output<Called>> {
    const call = this.open(method, caller, signal);
    call.send(request);
    call.end();
    let last: Output<Called> | undefined;
    for await (const answer of call.answers) last = answer;
    if (last === undefined) throw new CallFailed(statusCode.unknown, "no answer");
    return last;
  }

  /**
   * @param untaken called with the bytes of requests that the handler has not taken; its exceptions
   * propagate from `send`
   * @param cut called if a received answer must be dropped
   * @throws CallFailed
   */
  open<Called extends DescMethod>(
    called: Called,
    caller: Caller,
    signal?: AbortSignal,
    untaken: (bytes: number) => void = () => undefined,
    cut: () => void = () => undefined,
  ): LocalCall<Called> {
    if (this.#isClosed) throw stopped();
    const method = this.#methodAt(`/${called.parent.typeName}/${called.name}`);
    if (method === undefined) throw new CallFailed(statusCode.unimplemented, `unknown method ${called.name}`);
    const { client: address, metadata, user: commonName = "" } = caller;
    const fields = new Map(Object.entries(metadata).map(([name, value]) => [name, [value]]));
    const left = () => carrier.cancel(new CallFailed(statusCode.cancelled, "the client is gone"));
    const carrier = new LocalCarrier(
      () => {
        this.#open.delete(carrier);
        signal?.removeEventListener("abort", left);
      },
      untaken,
      cut,
    );
    this.#open.add(carrier);
    const peer = { address, commonName };
    const base = { metadata: new Metadata(fields), peer, deadlineMs: Number.POSITIVE_INFINITY, carrier };
    const exchange = new Exchange(method, base, carrier);
    carrier.begin(exchange);
    if (signal?.aborted === true) left();
    else if (carrier.isOpen) signal?.addEventListener("abort", left, { once: true });
    return {
      send: (request) => carrier.send(toBinary(called.input, create(called.input, request))),
      end: () => exchange.remoteEnded(),
      cancel: (failure) => (failure === undefined ? left() : carrier.cancel(failure)),
      answers: answersOf(carrier, called.output, left) as AsyncGenerator<Output<Called>, void>,
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const carrier of this.#open) carrier.cancel(stopped());
  }
}

function stopped(): CallFailed {
  return new CallFailed(statusUnavailable, "etcdserver: server stopped");
}

interface Arrived {
  readonly message: Encoded;
  readonly taken: () => void;
}

/** Both ends of a call in memory. Requesting the next answer acknowledges the previous one. */
class LocalCarrier implements Carrier, Messages {
  readonly #gone: () => void;
  readonly #untaken: (bytes: number) => void;
  readonly #wasCut: () => void;
  /** Pending requests, from `#next` on. Shifting a long array for each would be slow. */
  #asked: Uint8Array[] = [];
  #next = 0;
  #askedBytes = 0;
  readonly #arrived: Arrived[] = [];
  #exchange: Exchange | undefined;
  /** The call's end: success if there is no failure. */
  #end: { readonly failure: CallFailed | undefined } | undefined;
  #wake: () => void = () => undefined;

  constructor(gone: () => void, untaken: (bytes: number) => void, cut: () => void) {
    this.#gone = gone;
    this.#untaken = untaken;
    this.#wasCut = cut;
  }

  /** The call is not over: messages may follow or be taken. */
  get isOpen(): boolean {
    return this.#exchange !== undefined;
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    if (this.#end !== undefined) this.#over(true);
  }

  answer(message: Encoded): void {
    this.message(message, () => undefined);
    this.end(undefined);
  }

  message(message: Encoded, taken: () => void): void {
    if (this.#end !== undefined) return;
    this.#arrived.push({ message, taken });
    this.#wake();
  }

  end(status: Status | undefined): void {
    if (this.#end !== undefined) return;
    this.#end = { failure: status && new CallFailed(status.code, status.details) };
    if (this.#arrived.length === 0) this.#over(true);
    this.#wake();
  }

  send(request: Uint8Array): void {
    if (this.#exchange === undefined) return;
    this.#asked.push(request);
    this.#askedBytes += request.length + prefixBytes;
    this.#exchange.more();
    this.#untaken(this.#askedBytes);
    if (this.#askedBytes > askedBytesMax)
      this.cancel(new CallFailed(statusCode.resourceExhausted, "etcdserver: too many requests"));
  }

  next(): Uint8Array | undefined {
    const request = this.#asked[this.#next];
    if (request === undefined) return undefined;
    this.#next += 1;
    this.#askedBytes -= request.length + prefixBytes;
    // At least half of the array has been taken: drop that part.
    if (2 * this.#next >= this.#asked.length) {
      this.#asked = this.#asked.slice(this.#next);
      this.#next = 0;
    }
    this.#untaken(this.#askedBytes);
    return request;
  }

  cut({ code, details }: Status): void {
    this.cancel(new CallFailed(code, details));
    this.#wasCut();
  }

  consumed(): void {
    // Queued requests are counted in the queue.
  }

  cancel(failure: CallFailed): void {
    this.#end ??= { failure };
    this.#arrived.length = 0;
    this.#asked = [];
    this.#next = 0;
    this.#over(false);
    this.#wake();
  }

  #over(isComplete: boolean): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.#exchange = undefined;
    this.#gone();
    exchange.over(isComplete);
  }

  /**
   * Returns the next message, which is valid until `took`; undefined: the call succeeded.
   *
   * @throws CallFailed
   */
  async arrived(): Promise<Encoded | undefined> {
    while (this.#arrived.length === 0 && this.#end === undefined)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    const first = this.#arrived[0];
    if (first !== undefined) return first.message;
    if (this.#end?.failure !== undefined) throw this.#end.failure;
    return undefined;
  }

  /** The caller has finished with the message, which no longer counts. */
  took(): void {
    this.#arrived.shift()?.taken();
    if (this.#end !== undefined && this.#arrived.length === 0) this.#over(true);
  }
}

/** Long answers are passed on unencoded. */
function decoded<Schema extends DescMethod["output"]>(
  schema: Schema,
  message: Encoded,
): MessageShape<Schema> {
  if (message instanceof LongAnswer) return message.answer as unknown as MessageShape<Schema>;
  return fromBinary(schema, message as Uint8Array);
}

async function* answersOf<Schema extends DescMethod["output"]>(
  carrier: LocalCarrier,
  schema: Schema,
  left: () => void,
): AsyncGenerator<MessageShape<Schema>, void> {
  try {
    for (;;) {
      const message = await carrier.arrived();
      if (message === undefined) return;
      yield decoded(schema, message);
      carrier.took();
    }
  } finally {
    left();
  }
}
