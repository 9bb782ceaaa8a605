import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Room } from "leasehold/common";
import { frameType } from "../../../http2/frames.js";
import { headerBlock } from "../../../http2/header-blocks.js";
import { begin, frame, headers, Talk } from "../../../../../../test/support/http2-bytes.js";
import {
  type Method,
  type ServerStream,
  statusCode,
  type StreamHandler,
  type UnaryCall,
  type UnaryHandler,
} from "./call.js";
import { GrpcServer } from "./server.js";

/** A room for the bytes of calls and requests. */
function roomOf(bytes: number) {
  return new Room(bytes, () => Object.assign(new Error("full"), { code: statusCode.resourceExhausted }));
}

const messageBytesMax = 3_000_000;

const codec: Pick<Method, "decode" | "encode"> = {
  decode: (bytes) => {
    if (Buffer.from(bytes).equals(Buffer.from("bad"))) throw new Error("no request");
    return bytes;
  },
  encode: (message) => message as Uint8Array,
};

const methodOf = (handler: UnaryHandler): Method => ({ kind: "unary", handler, ...codec });
const streamOf = (handler: StreamHandler, kind: Method["kind"] = "bidi_streaming"): Method => ({
  kind,
  handler,
  ...codec,
});
let server: GrpcServer;
let listener: Server;
let port: number;
let sockets: Socket[];
/** Calls without an answer yet, and how calls ended. */
let waiting: UnaryCall[];
let streams: ServerStream[];
let over: string[];

function noAnswer(): never {
  throw new Error("no answer");
}
const echo: UnaryHandler = (call, callback) => callback(null, call.request);
const methods: [name: string, method: Method][] = [
  ["Echo", methodOf(echo)],
  ["Fail", methodOf((_call, callback) => callback({ code: 9, details: "100 % süß\n" }))],
  [
    "Throw",
    methodOf(() => {
      throw new Error("a mistake");
    }),
  ],
  ["FailLong", methodOf((_call, callback) => callback({ code: 9, details: "süß".repeat(5_000) }))],
  ["NoAnswer", { ...methodOf((_call, callback) => callback(null, "")), encode: noAnswer }],
  [
    "NoAnswerLater",
    { ...methodOf((_call, callback) => void setImmediate(() => callback(null, ""))), encode: noAnswer },
  ],
  ["NoAnswers", { ...streamOf((stream) => void stream.write("")), encode: noAnswer }],
  [
    "ThrowLater",
    streamOf((stream) =>
      stream.listen(
        () => {
          throw new Error("a mistake");
        },
        () => undefined,
      ),
    ),
  ],
  ["Large", methodOf((call, callback) => callback(null, new Uint8Array(Number(text(call.request)))))],
  ["Token", methodOf((call, callback) => callback(null, Buffer.from(call.metadata.get("token").join(","))))],
  [
    "Wait",
    methodOf((call) => {
      waiting.push(call);
      call.whenOver(() => over.push(`${text(call.request)} ${call.code}`));
    }),
  ],
  ["Stream", streamOf((stream) => void streams.push(stream))],
  [
    "Each",
    streamOf((stream) =>
      stream.listen(
        (request) => stream.write(request),
        () => stream.end(),
      ),
    ),
  ],
  [
    "Count",
    streamOf((stream) => {
      for (let number = 0; number < 5; number += 1)
        stream.write(Buffer.from(`${text(stream.request)} ${number}`));
      stream.fail({ code: 5, details: "no more" });
    }, "server_streaming"),
  ],
];
const text = (message: unknown) => Buffer.from(message as Uint8Array).toString();

beforeEach(async () => {
  [sockets, waiting, streams, over] = [[], [], [], []];
  server = new GrpcServer(1_000, messageBytesMax, roomOf(256 * 1024 * 1024));
  server.add("service", methods);
  listener = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    server.serve(socket);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  port = (listener.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  listener.close();
  await server.leave(0);
});

const same = (bytes: Buffer) => bytes;

describe("a client of grpc-js", () => {
  let client: Client;
  beforeEach(() => {
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.max_receive_message_length": -1,
    });
  });
  afterEach(() => client.close());

  function ask(
    method: string,
    request: string | Buffer,
    options = {},
    metadata = new Metadata(),
  ): Promise<Buffer> {
    return new Promise((resolve, reject) =>
      client.makeUnaryRequest(
        `/service/${method}`,
        same,
        same,
        Buffer.from(request),
        metadata,
        options,
        (error, answer) => (error === null ? resolve(answer!) : reject(error)),
      ),
    );
  }
  const refusal = (method: string, request: string | Buffer = "", options = {}) =>
    ask(method, request, options).then(
      () => "answered",
      ({ code, details }: ServiceError) => `${code} ${details}`,
    );

  async function streamRefusal(method: string): Promise<string> {
    const stream = client.makeBidiStreamRequest(`/service/${method}`, same, same);
    stream.write(Buffer.from("a"));
    stream.resume();
    const [{ code, details }] = (await once(stream, "error")) as [ServiceError];
    return `${code} ${details}`;
  }

  test("gets its answers, a thousand at once, short and long", async () => {
    const lengths = Array.from({ length: 1_000 }, (_, index) => (index % 100 === 0 ? 70_000 + index : index));
    const answers = await Promise.all(lengths.map((length) => ask("Echo", Buffer.alloc(length, length))));
    expect(
      answers.every((answer, index) => answer.equals(Buffer.alloc(lengths[index]!, lengths[index]))),
    ).toBe(true);
    expect((await ask("Echo", Buffer.alloc(2_900_000, 1))).length).toBe(2_900_000);
    expect((await ask("Large", "20000000")).length).toBe(20_000_000);
  });

  test("gets the text of a refusal, in any script", async () => {
    expect(await refusal("Fail")).toBe("9 100 % süß\n");
    expect(await refusal("Throw")).toBe("2 a mistake");
    expect(await refusal("Echo", "bad")).toBe("13 grpc: error unmarshalling request: no request");
    expect(await refusal("Nothing")).toBe("12 unknown method Nothing for service service");
    expect(await refusal("FailLong")).toMatch(/^9 (?:süß){100}/);
    expect(await refusal("NoAnswer")).toBe("13 grpc: error marshalling response: no answer");
    expect(await refusal("NoAnswerLater")).toBe("13 grpc: error marshalling response: no answer");
    expect(await streamRefusal("NoAnswers")).toBe("13 grpc: error marshalling response: no answer");
    expect(await streamRefusal("ThrowLater")).toBe("2 a mistake");
    expect(await refusal("Echo", Buffer.alloc(messageBytesMax + 1))).toMatch(
      /^8 grpc: received message larger than max/,
    );
    expect(text(await ask("Echo", "still there"))).toBe("still there");
  });

  test("sends metadata", async () => {
    const metadata = new Metadata();
    metadata.set("Token", "a.b");
    expect(text(await ask("Token", "", {}, metadata))).toBe("a.b");
    expect(text(await ask("Token", ""))).toBe("");
  });

  test("that cancels is noticed, and so is one whose deadline is over", async () => {
    const call = client.makeUnaryRequest("/service/Wait", same, same, Buffer.from("a"), () => undefined);
    await expect.poll(() => waiting.length).toBe(1);
    call.cancel();
    await expect.poll(() => over).toEqual(["a 1"]);
    // The call must reach the server before its deadline; on a busy machine that takes longer.
    for (let deadlineMs = 100; waiting.length < 2; deadlineMs *= 2)
      expect(await refusal("Wait", "b", { deadline: Date.now() + deadlineMs })).toMatch(/^4 /);
    await expect.poll(() => over.length === waiting.length).toBe(true);
  });

  test("has streams in both directions", async () => {
    const stream = client.makeBidiStreamRequest("/service/Each", same, same);
    const heard: string[] = [];
    stream.on("data", (message: Buffer) => heard.push(text(message)));
    for (const word of ["a", "b", "", "x".repeat(200_000)]) stream.write(Buffer.from(word));
    stream.end();
    const [status] = (await once(stream, "status")) as [{ code: number }];
    expect([heard.map(({ length }) => length), status.code]).toEqual([[1, 1, 0, 200_000], 0]);
  });

  test("gets all of a stream of answers before its error", async () => {
    const stream = client.makeServerStreamRequest("/service/Count", same, same, Buffer.from("n"));
    const heard: string[] = [];
    stream.on("data", (message: Buffer) => heard.push(text(message)));
    const [error] = (await once(stream, "error")) as [ServiceError];
    expect([heard, error.code, error.details]).toEqual([["n 0", "n 1", "n 2", "n 3", "n 4"], 5, "no more"]);
  });

  test("that does not read has its answers queued, and its requests are not read while a stream pauses", async () => {
    const stream = client.makeBidiStreamRequest("/service/Stream", same, same);
    stream.on("error", () => undefined);
    await expect.poll(() => streams.length).toBe(1);
    const [call] = streams;
    stream.pause();
    let [taken, written] = [0, 0];
    for (; written < 2_000 && call!.write(Buffer.alloc(100_000), () => (taken += 1)); written += 1)
      await new Promise((resolve) => setImmediate(resolve));
    expect(written).toBeLessThan(1_000);
    expect(written + 1 - taken).toBeLessThanOrEqual(16);
    let heard = 0;
    call!.listen(
      () => {
        heard += 1;
        call!.pause();
      },
      () => undefined,
    );
    for (let count = 0; count < 1_000; count += 1) stream.write(Buffer.alloc(1_000));
    await expect.poll(() => heard).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(heard).toBe(1);
    // Only the stream's window was taken from its client.
    const further = setInterval(() => call!.resume(), 0);
    await expect.poll(() => heard).toBe(1_000);
    clearInterval(further);
    stream.resume();
    await expect.poll(() => taken).toBe(written + 1);
    stream.cancel();
    await expect.poll(() => call!.isOver).toBe(true);
  });

  test("finishes calls in progress while the server drains, and gets GOAWAY", async () => {
    const asked = ask("Wait", "a");
    await expect.poll(() => waiting.length).toBe(1);
    const left = server.leave(60_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    waiting[0]!.answer(null, Buffer.from("done"));
    expect(text(await asked)).toBe("done");
    await left;
    expect(sockets.every(({ destroyed }) => destroyed)).toBe(true);
  });
});

describe("a client of node:http2", () => {
  let session: ClientHttp2Session;
  beforeEach(() => {
    session = connect(`http://127.0.0.1:${port}`);
    session.on("error", () => undefined);
  });
  afterEach(() => session.destroy());

  const framed = (message: string, compressed = 0) => {
    const head = Buffer.from([compressed, 0, 0, 0, 0]);
    head.writeUInt32BE(Buffer.byteLength(message), 1);
    return Buffer.concat([head, Buffer.from(message)]);
  };
  function request(path: string, more = {}): ClientHttp2Stream {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...more,
    });
    return stream.on("error", () => undefined);
  }
  async function answerOf(stream: ClientHttp2Stream): Promise<Record<string, unknown>> {
    let found = {};
    const add = (fields: object) => (found = { ...found, ...fields });
    stream.on("response", add).on("trailers", add);
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    await once(stream, "close");
    return { ...found, content: Buffer.concat(pieces).toString("latin1") };
  }

  test("may send its request in any pieces, with any fields of any length", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const stream = request("/service/Token", {
          token: "t".repeat(index * 20),
          [`x-${index % 7}`]: `ü${index}`,
        });
        for (const byte of framed(`${index}`)) stream.write(Buffer.of(byte));
        stream.end();
        return answerOf(stream);
      }),
    );
    expect(answers.map(({ content }) => String(content).slice(5).length)).toEqual(
      Array.from({ length: 50 }, (_, index) => index * 20),
    );
    expect(new Set(answers.map((answer) => answer["grpc-status"]))).toEqual(new Set(["0"]));
  });

  test.each([
    ["without any message", "", { "grpc-status": "13" }],
    ["with half a message", framed("abc").subarray(0, 6), { "grpc-status": "13" }],
    ["with two", Buffer.concat([framed("a"), framed("b")]), { "grpc-status": "12" }],
    ["with one that is compressed", framed("a", 1), { "grpc-status": "12" }],
  ])("is refused %s", async (_, content, expected) => {
    const stream = request("/service/Echo");
    stream.end(content);
    expect(await answerOf(stream)).toMatchObject({ ":status": 200, ...expected });
  });

  test("is refused if its request is not a gRPC call", async () => {
    const asked = async (more: object) => {
      const stream = request("/service/Echo", more);
      stream.end();
      return (await answerOf(stream))[":status"];
    };
    expect(await asked({ "content-type": "text/plain" })).toBe(415);
    expect(await asked({ ":method": "GET" })).toBe(405);
    const unknown = request("/other/Echo");
    unknown.end();
    expect(await answerOf(unknown)).toMatchObject({
      "grpc-status": "12",
      "grpc-message": "unknown service other",
    });
  });

  test("is answered with no header table, or a small one", async () => {
    for (const headerTableSize of [0, 100]) {
      session.destroy();
      session = connect(`http://127.0.0.1:${port}`, { settings: { headerTableSize } });
      session.on("error", () => undefined);
      // The server's settings have been applied by then.
      await once(session, "localSettings");
      for (const word of ["a", "b"]) {
        const stream = request("/service/Echo");
        stream.end(framed(word));
        expect(await answerOf(stream)).toMatchObject({ ":status": 200, "grpc-status": "0" });
      }
    }
  });

  test("has its stream reset after an early refusal, and continues", async () => {
    const stream = request("/service/Nothing");
    stream.write(framed("a"));
    expect(await answerOf(stream)).toMatchObject({ "grpc-status": "12" });
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
    const next = request("/service/Echo");
    next.end(framed("b"));
    expect(await answerOf(next)).toMatchObject({ "grpc-status": "0" });
  });
});

const ping = frame(frameType.ping, 0, 0, Buffer.from("12345678"));

/** The streams of the header blocks with which the server answers these bytes. */
async function answeredBy(bytes: Buffer): Promise<number[]> {
  const socket = connectTcp(port, "127.0.0.1");
  let heard = Buffer.alloc(0);
  socket.on("data", (piece: Buffer) => (heard = Buffer.concat([heard, piece])));
  const streamsOf = (kind: number) => {
    const found: number[] = [];
    for (let at = 0; at + 9 <= heard.length; at += 9 + heard.readUIntBE(at, 3))
      if (heard[at + 3] === kind) found.push(heard.readUInt32BE(at + 5));
    return found;
  };
  socket.write(bytes);
  // When the second ping is answered, everything before the first has been processed.
  for (const pings of [1, 2]) {
    socket.write(ping);
    await expect.poll(() => streamsOf(frameType.ping).length, { interval: 5 }).toBe(pings);
  }
  return streamsOf(frameType.headers);
}

test("clients that hold back the ends of many long requests are refused, and others still have room", async () => {
  const path = headerBlock([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/service/Echo"],
    ["content-type", "application/grpc"],
  ]);
  await server.leave(0);
  // One connection gets half of the room: five calls, with the overhead of each.
  server = new GrpcServer(1_000, messageBytesMax, roomOf(10 * (16_005 + 4_096 + 196) + 50));
  server.add("service", methods);
  // Each announces a million bytes. A tenth of the server's room arrives.
  const part = Buffer.concat([Buffer.from([0, 0, 0x0f, 0x42, 0x40]), Buffer.alloc(16_000)]);
  const requests = Array.from({ length: 10 }, (_, index) =>
    Buffer.concat([headers(index * 2 + 1, 0, path), frame(0, 0, index * 2 + 1, part)]),
  );
  expect(await answeredBy(Buffer.concat([begin, ...requests]))).toEqual([11, 13, 15, 17, 19]);
  // The same if everything arrives but the half-close.
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0x3e, 0x80]), Buffer.alloc(16_000)]);
  const wholeOnes = Array.from({ length: 10 }, (_, index) =>
    Buffer.concat([
      headers(index * 2 + 1, 0, path),
      frame(0, 0, index * 2 + 1, message.subarray(0, 5)),
      frame(0, 0, index * 2 + 1, message.subarray(5)),
    ]),
  );
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await answeredBy(Buffer.concat([begin, ...wholeOnes]))).toEqual([11, 13, 15, 17, 19]);
  const short = frame(0, 1, 1, Buffer.concat([Buffer.from([0, 0, 0, 0x27, 0x10]), Buffer.alloc(10_000)]));
  expect(await answeredBy(Buffer.concat([begin, headers(1, 0, path), short]))).toEqual([1, 1]);
  // No memory is held for closed connections.
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await answeredBy(Buffer.concat([begin, ...requests]))).toEqual([11, 13, 15, 17, 19]);
});

test("unread requests, long heads and idle calls count, and others still have room", async () => {
  await server.leave(0);
  const head = (path: string, token = "") =>
    headerBlock([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", path],
      ["content-type", "application/grpc"],
      ["token", token],
    ]);
  const ids = Array.from({ length: 12 }, (_, index) => index * 2 + 1);
  const gone = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
  };
  // One connection gets half of the room.
  server = new GrpcServer(1_000, messageBytesMax, roomOf(100_000));
  server.add("service", methods);
  // Complete messages within the window of a stream that takes none.
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0x0b, 0xb8]), Buffer.alloc(3_000)]);
  const unheard = ids.map((id) =>
    Buffer.concat([
      headers(id, 0, head("/service/Stream")),
      frame(0, 0, id, message),
      frame(0, 0, id, message),
    ]),
  );
  const refused = await answeredBy(Buffer.concat([begin, ...unheard]));
  expect(refused).toEqual(ids.slice(4));
  // Bytes taken by a stream no longer count: there is room for three streams of another connection instead of
  // two.
  for (const stream of streams.slice(0, 3))
    stream.listen(
      () => undefined,
      () => undefined,
    );
  expect(await answeredBy(Buffer.concat([begin, ...unheard]))).toEqual(ids.slice(3));
  await gone();
  const long = ids.map((id) => headers(id, 0, head("/service/Echo", "x".repeat(8_000))));
  expect(await answeredBy(Buffer.concat([begin, ...long]))).toEqual(ids.slice(4));
  await gone();
  const silent = [...ids, 25, 27].map((id) => headers(id, 0, head("/service/Echo")));
  expect(await answeredBy(Buffer.concat([begin, ...silent]))).toEqual([25, 27]);
  await gone();
  expect(await answeredBy(Buffer.concat([begin, ...silent]))).toEqual([25, 27]);
});

test("memory stays bounded for any input to streams that read nothing", async () => {
  await server.leave(0);
  const heldBytesMax = 4_000_000;
  server = new GrpcServer(1_000, messageBytesMax, roomOf(heldBytesMax));
  server.add("service", methods);
  const stream = headerBlock([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/service/Stream"],
    ["content-type", "application/grpc"],
  ]);
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0x3e, 0x80]), Buffer.alloc(16_000)]);
  const words: Buffer[] = [begin];
  for (let id = 1; id < 100; id += 2) {
    words.push(headers(id, 0, stream));
    for (let count = 0; count < 4; count += 1) words.push(frame(0, 0, id, message));
  }
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const kept = () => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const before = kept();
  const said = Buffer.concat(words);
  // Sixty megabytes; unbounded buffers would hold twice as much.
  for (let connections = 0; connections < 20; connections += 1) await answeredBy(said);
  expect(streams.filter(({ isOver }) => !isOver).length).toBeGreaterThan(40);
  // Sockets hold what they have read a moment longer, and arrays are released asynchronously.
  await expect
    .poll(() => kept() - before, { timeout: 15_000, interval: 100 })
    .toBeLessThan(3 * heldBytesMax + said.length);
}, 30_000);

test("a client that disconnects in the middle of anything leaves nothing behind", async () => {
  for (const words of [begin, Buffer.concat([begin, headers(1)]), Buffer.from("PRI * HTTP/1")]) {
    const socket = connectTcp(port, "127.0.0.1");
    socket.on("error", () => undefined).write(words);
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.destroy();
  }
  await expect.poll(() => sockets.length).toBe(3);
  await expect.poll(() => sockets.every(({ destroyed }) => destroyed)).toBe(true);
  expect(new Talk().connection.streams).toBe(0);
});

const hasLoad = process.env["PATH"]!.split(":").some((folder) => existsSync(join(folder, "h2load")));
test.runIf(hasLoad)("h2load of nghttp2 gets an answer to each of its requests", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lh-h2load-"));
  const content = join(folder, "content");
  await writeFile(content, Buffer.from([0, 0, 0, 0, 1, 65]));
  const words = ["-n", "5000", "-c", "5", "-m", "100", "-d", content, "-H", "content-type: application/grpc"];
  const { stdout } = await promisify(execFile)("h2load", [...words, `http://127.0.0.1:${port}/service/Echo`]);
  await rm(folder, { recursive: true });
  expect(stdout).toMatch(/5000 succeeded, 0 failed, 0 errored/);
});
