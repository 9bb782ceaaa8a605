import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { Duplex } from "node:stream";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type Caller, localMetadata } from "./calls.js";

/** Every message has a byte that says whether it is compressed, and its length. */
const headBytes = 5;
const statusUnknown = 2;
const statusUnavailable = 14;

/** What a call ended with that was not answered. */
export class CallFailed extends Error {
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.name = "CallFailed";
    this.code = code;
  }
}

type Input<Method extends DescMethod> = MessageInitShape<Method["input"]>;
type Output<Method extends DescMethod> = MessageShape<Method["output"]>;

/** A call that is under way. */
export interface LocalCall<Method extends DescMethod> {
  send(request: Input<Method>): void;
  /** Nothing more is asked. */
  end(): void;
  cancel(): void;
  /** The answers; throws `CallFailed` at the end if the call failed. Who leaves early cancels it. */
  readonly answers: AsyncGenerator<Output<Method>, void>;
}

/**
 * A client of this server's own services, in memory: what is made of several requests (locks, elections,
 * JSON) takes the way of every client, with the same bounds and rights.
 */
export class LocalClient {
  readonly #inject: (connection: Duplex) => void;
  #session: ClientHttp2Session | undefined;
  #isClosed = false;

  constructor(inject: (connection: Duplex) => void) {
    this.#inject = inject;
  }

  /** @throws CallFailed */
  async ask<Method extends DescMethod>(
    method: Method,
    request: Input<Method>,
    caller: Caller,
    signal?: AbortSignal,
  ): Promise<Output<Method>> {
    const call = this.open(method, caller, signal);
    call.send(request);
    call.end();
    let last: Output<Method> | undefined;
    for await (const answer of call.answers) last = answer;
    if (last === undefined) throw new CallFailed(statusUnknown, "no answer");
    return last;
  }

  open<Method extends DescMethod>(method: Method, caller: Caller, signal?: AbortSignal): LocalCall<Method> {
    const stream = this.#connected().request(
      {
        ...localMetadata(caller),
        ":method": "POST",
        ":path": `/${method.parent.typeName}/${method.name}`,
        "content-type": "application/grpc",
        te: "trailers",
      },
      signal === undefined ? {} : { signal },
    );
    const failure = failureOf(stream);
    return {
      send: (request) => void stream.write(framed(toBinary(method.input, create(method.input, request)))),
      end: () => stream.end(),
      cancel: () => stream.close(constants.NGHTTP2_CANCEL),
      answers: answersOf(stream, method.output, failure) as AsyncGenerator<Output<Method>, void>,
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#session?.destroy();
  }

  #connected(): ClientHttp2Session {
    if (this.#isClosed) throw new CallFailed(statusUnavailable, "etcdserver: server stopped");
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed)
      return this.#session;
    const [ours, theirs] = pair();
    this.#inject(theirs);
    const session = connect("http://local", { createConnection: () => ours });
    session.on("error", () => undefined);
    this.#session = session;
    return session;
  }
}

/** Resolves when the call is over. */
function failureOf(stream: ClientHttp2Stream): Promise<CallFailed | undefined> {
  return new Promise((resolve) => {
    const take = (headers: Readonly<Record<string, unknown>>) => {
      const status = headers["grpc-status"];
      if (status === undefined) return;
      const text = decodeURIComponent(String(headers["grpc-message"] ?? ""));
      resolve(status === "0" ? undefined : new CallFailed(Number(status), text));
    };
    stream.on("response", take).on("trailers", take);
    stream.on("error", () => undefined);
    stream.on("close", () => resolve(new CallFailed(statusUnavailable, "etcdserver: server stopped")));
  });
}

async function* answersOf<Schema extends DescMessage>(
  stream: ClientHttp2Stream,
  schema: Schema,
  failure: Promise<CallFailed | undefined>,
): AsyncGenerator<MessageShape<Schema>, void> {
  let held: Buffer[] = [];
  let bytes = 0;
  let wanted = headBytes;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      held.push(piece);
      bytes += piece.length;
      while (bytes >= wanted) {
        const whole = held.length === 1 ? held[0]! : Buffer.concat(held);
        const end = headBytes + whole.readUInt32BE(1);
        held = [whole];
        wanted = end;
        if (bytes < end) break;
        yield fromBinary(schema, whole.subarray(headBytes, end));
        held = [whole.subarray(end)];
        bytes -= end;
        wanted = headBytes;
      }
    }
  } catch {
    // The stream was cancelled or broken off: `failure` tells.
  } finally {
    stream.close(constants.NGHTTP2_CANCEL);
  }
  const failed = await failure;
  if (failed !== undefined) throw failed;
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Two ends of a connection in memory: what one writes, the other reads. */
function pair(): [Duplex, Duplex] {
  const ends: Duplex[] = [];
  const taken: ((() => void) | undefined)[] = [undefined, undefined];
  for (const [own, other] of [
    [0, 1],
    [1, 0],
  ] as const)
    ends[own] = new Duplex({
      read: () => {
        const done = taken[own];
        taken[own] = undefined;
        done?.();
      },
      write: (piece: Buffer, _encoding, done) => {
        taken[other] = done;
        ends[other]!.push(piece);
      },
      final: (done) => {
        ends[other]!.push(null);
        done();
      },
      destroy: (error, done) => {
        taken[own]?.();
        taken[own] = undefined;
        process.nextTick(() => ends[other]!.destroy());
        done(error);
      },
    });
  return [ends[0]!, ends[1]!];
}
