import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Room } from "leasehold/common";
import { KV, RangeResponseSchema, Watch } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { tooManyRequests } from "../../../state/errors.js";
import { Counters } from "../../metrics/counters.js";
import type { Http1 } from "../../wire/port.js";
import { LocalClient } from "../calls/local.js";
import { methodsOf } from "../calls/methods.js";
import type { Method, ServerStream, UnaryCall, UnaryHandler } from "../../wire/rpc/call.js";
import { clientHttp } from "./server.js";
import { httpTimes } from "../../wire/http/timeouts.js";

/**
 * Timeouts for slow clients. The connections come from no listener of their own, so Node enforces no
 * timeouts.
 */
const times = {
  ...httpTimes,
  headMs: 1_000,
  headLookMs: 200,
  requestMs: 1_000,
  restMs: 1_000,
  stuckMs: 1_000,
};
const answerBytes = 40_000_000;
let http: Http1;
let listener: Server;
let port: number;
/** For each answered call, whether its client has read the answer. */
let over: boolean[];
let streams: ServerStream[];

beforeEach(async () => {
  [over, streams] = [[], []];
  const range = (call: UnaryCall, answer: Parameters<UnaryHandler>[1]) => {
    const index = over.push(false) - 1;
    call.whenOver(() => (over[index] = true));
    const key = (call.request as { key: Uint8Array }).key;
    const value = key[0] === 66 ? Buffer.alloc(answerBytes) : Buffer.from("x");
    answer(null, create(RangeResponseSchema, { kvs: [{ key, value }] }));
  };
  const watch = (stream: ServerStream) => void streams.push(stream);
  const methods = new Map<string, Method>([
    ...methodsOf(KV, { Range: range as UnaryHandler }, new Counters()).map(
      ([name, method]) => [`/${KV.typeName}/${name}`, method] as const,
    ),
    ...methodsOf(Watch, { Watch: watch as never }, new Counters()).map(
      ([name, method]) => [`/${Watch.typeName}/${name}`, method] as const,
    ),
  ]);
  const local = new LocalClient((path) => methods.get(path));
  http = clientHttp(
    {
      host: {} as never,
      local,
      room: new Room(1_000_000, tooManyRequests),
      metrics: () => "",
      healthAsked: { healthy: 0, unhealthy: 0 },
    },
    100,
    { hosts: undefined, origins: undefined },
    times,
  );
  listener = createServer((socket) => http.take(socket)).listen(0, "127.0.0.1");
  await once(listener, "listening");
  port = (listener.address() as AddressInfo).port;
});
afterEach(() => {
  listener.close();
  http.close();
});

interface Slow {
  readonly socket: Socket;
  /** The received status, when the connection is closed. */
  readonly end: Promise<{ readonly status: string; readonly afterMs: number }>;
}

/** Sends its first bytes at once, and then one byte every 100 ms. */
function slow(words: string, byte = "a"): Slow {
  const begunMs = performance.now();
  const socket = connect(port, "127.0.0.1");
  let heard = "";
  socket.on("error", () => undefined).on("data", (piece) => (heard += String(piece)));
  socket.write(words);
  const dripping = setInterval(() => socket.write(byte), 100);
  const end = once(socket, "close").then(() => {
    clearInterval(dripping);
    return { status: heard.split("\r\n")[0]!, afterMs: performance.now() - begunMs };
  });
  return { socket, end };
}

const post = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;

test.each([
  ["a head that does not end", "GET /version HTTP/1.1\r\nX: ", "HTTP/1.1 408 Request Timeout"],
  ["a call whose content does not end", post("/v3/kv/range", 1_000_000), ""],
  ["a stream that asks nothing", post("/v3/watch", 1_000_000), ""],
  [
    "a page asked for with content that does not end",
    post("/version", 1_000_000),
    "HTTP/1.1 405 Method Not Allowed",
  ],
  ["what is no HTTP, and goes on", "HELLO\r\n\r\n", "HTTP/1.1 400 Bad Request"],
])("%s is not waited for", async (_what, words, status) => {
  const { end } = slow(words, words.startsWith("POST") ? " " : "a");
  const { afterMs, ...said } = await end;
  expect(said).toEqual({ status });
  expect(afterMs).toBeLessThan(20_000);
});

test("an idle connection is closed, and one with repeated requests is not", async () => {
  const idle = connect(port, "127.0.0.1");
  idle.write("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const asking = connect(port, "127.0.0.1");
  const timer = setInterval(() => asking.write("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 500);
  for (const socket of [idle, asking]) socket.on("error", () => undefined).resume();
  await once(idle, "close");
  expect(asking.destroyed).toBe(false);
  clearInterval(timer);
  asking.destroy();
});

test("a client that does not read its answer is disconnected; until then the answer counts", async () => {
  const socket = connect(port, "127.0.0.1").pause();
  socket.on("error", () => undefined);
  const body = JSON.stringify({ key: "Qg==" });
  const watch = JSON.stringify({ create_request: { key: "QQ==" } });
  // A queued call, which has not begun, makes no difference.
  socket.write(post("/v3/kv/range", body.length) + body + post("/v3/watch", watch.length) + watch);
  await expect.poll(() => over).toEqual([false]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(over).toEqual([false]);
  await expect.poll(() => over, { timeout: 20_000 }).toEqual([true]);
  expect(streams).toEqual([]);
  socket.destroy();
});

test("a silent watch stays open, even one requested before an answer was read", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  const body = JSON.stringify({ key: "QQ==" });
  const watch = JSON.stringify({ create_request: { key: "QQ==" } });
  socket.write(post("/v3/kv/range", body.length) + body + post("/v3/watch", watch.length) + watch);
  await expect.poll(() => over).toEqual([true]);
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  expect(socket.destroyed).toBe(false);
  expect(streams.map(({ isOver }) => isOver)).toEqual([false]);
  socket.destroy();
  await expect.poll(() => streams[0]!.isOver).toBe(true);
});
