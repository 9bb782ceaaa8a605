import { connect, Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test } from "vitest";
import {
  type HttpEdge,
  hasFree,
  openHttpEdge,
  post,
  saying,
} from "../../../../../../test/support/http-edge.js";
import {
  PutResponseSchema,
  RangeResponseSchema,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ServerStream, UnaryHandler } from "../../wire/rpc/call.js";

let edge: HttpEdge;
afterEach(() => edge.close());

const put = post("/v3/kv/put", '{"key":"YQ=="}');
const watch = post("/v3/watch", '{"create_request":{"key":"YQ=="}}');
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const answersIn = (text: string) => text.split("HTTP/1.1 ").slice(1);

/** A handler that answers when told to. */
function held() {
  const answers: (() => void)[] = [];
  const handler: UnaryHandler = (_call, answer) =>
    void answers.push(() => answer(null, create(PutResponseSchema)));
  return { answers, handler };
}

test("requests on one connection are processed one at a time, and answered in order", async () => {
  const { answers, handler } = held();
  edge = await openHttpEdge({ Put: handler });
  const { heard, socket } = saying(edge.port, put + get("/metrics") + put);
  await expect.poll(() => answers.length).toBe(1);
  const other = saying(edge.port, get("/version"));
  await expect.poll(other.heard).toContain("etcdserver");
  expect([answers.length, heard()]).toEqual([1, ""]);
  answers[0]!();
  await expect.poll(() => answers.length).toBe(2);
  answers[1]!();
  await expect.poll(() => answersIn(heard()).length).toBe(3);
  expect(answersIn(heard())[1]).toContain("metric 1");
  for (const each of [socket, other.socket]) each.destroy();
});

test("a client that pipelines too many requests is disconnected, and leaves nothing behind", async () => {
  const { answers, handler } = held();
  edge = await openHttpEdge({ Put: handler });
  const { closed } = saying(edge.port, put.repeat(66));
  await closed;
  await expect.poll(() => edge.open.size).toBe(0);
  expect(answers.length).toBe(1);
  expect(hasFree(edge)).toBe(true);
  const { heard, socket } = saying(edge.port, put.repeat(65));
  await expect.poll(() => answers.length).toBe(2);
  for (let count = 2; count < 66; count += 1) {
    answers[count - 1]!();
    await expect.poll(() => answers.length, { interval: 1 }).toBe(count + 1);
  }
  answers[65]!();
  await expect.poll(() => answersIn(heard()).length).toBe(65);
  socket.destroy();
});

test("a disconnect cancels the current request and all queued ones", async () => {
  edge = await openHttpEdge({ Watch: () => undefined as never });
  const { socket } = saying(edge.port, watch + watch + put);
  await expect.poll(() => edge.open.size).toBe(1);
  socket.destroy();
  await expect.poll(() => edge.open.size).toBe(0);
  expect(hasFree(edge)).toBe(true);
});

test("incomplete requests share a memory bound, and release it however they end", async () => {
  const heldBytesMax = 3_000_000;
  edge = await openHttpEdge({}, { heldBytesMax, requestMs: 1_000 });
  const half = `{"value":"${"A".repeat(1_000_000)}`;
  const first = saying(edge.port, post("/v3/kv/put", half, 2_000_000));
  await expect.poll(() => hasFree(edge, 2_000_000)).toBe(false);
  // A client's own share must be free: of these three, not all get what they want.
  const others = ["/v3/kv/put", "/v3/lease/keepalive"].map((path) =>
    saying(edge.port, post(path, half, 2_000_000)),
  );
  const heard = () => others.map((other) => other.heard()).join("");
  await expect.poll(heard).toContain("429 Too Many Requests");
  expect(heard()).toContain("etcdserver: too many requests");
  // The request was not completed in time.
  expect(await first.closed).toBe("");
  for (const { socket } of others) socket.destroy();
  await expect.poll(() => hasFree(edge, heldBytesMax)).toBe(true);
  expect(edge.open.size).toBe(0);
});

test.each([
  ["an answer", put],
  ["no JSON", post("/v3/kv/put", "x")],
  ["a stream", watch],
  ["a page", get("/metrics")],
  ["a refusal", post("/v3/kv/txn", `{"success":[${"{},".repeat(10_000)}{}]}`)],
])("nothing is kept after it: %s", async (_what, words) => {
  edge = await openHttpEdge();
  const { heard, socket } = saying(edge.port, words);
  await expect.poll(() => answersIn(heard()).length).toBe(1);
  socket.destroy();
  await expect.poll(() => hasFree(edge)).toBe(true);
  expect(edge.open.size).toBe(0);
});

const value = Buffer.alloc(20_000_000);
const large: UnaryHandler = (_call, answer) =>
  answer(null, create(RangeResponseSchema, { kvs: [{ value }] }));
const details = "x".repeat(20_000_000);
const refusing: UnaryHandler = (_call, answer) => answer({ code: 9, details });
function flood(stream: ServerStream): void {
  const blob = create(WatchResponseSchema, { events: [{ kv: { value: Buffer.alloc(1_000_000) } }] });
  for (let count = 0; count < 20; count += 1) stream.write(blob);
}

test.each([
  ["an answer", post("/v3/kv/range", "{}")],
  ["a refusal", post("/v3/kv/put", "{}")],
  ["a page", get("/metrics")],
  ["a stream, and asks on", "POST /v3/watch HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n{}"],
])("who takes nothing of %s is sent away, also if it says something all the time", async (_what, words) => {
  const handlers = { Put: refusing, Range: large, Watch: flood as never };
  edge = await openHttpEdge(handlers, { stuckMs: 300, metrics: () => details });
  const { closed, socket } = saying(edge.port, words);
  socket.pause();
  const dripping = setInterval(() => socket.write(" "), 50);
  await expect.poll(() => hasFree(edge)).toBe(false);
  await expect.poll(() => hasFree(edge)).toBe(true);
  expect(edge.open.size).toBe(0);
  clearInterval(dripping);
  socket.resume();
  await closed;
});

test("a client that disconnects while its answer is written leaves nothing behind", async () => {
  const kvs = Array.from({ length: 30_000 }, () => ({ value: Buffer.from("a") }));
  const socket = new Socket().on("error", () => undefined);
  const many: UnaryHandler = (_call, answer) => {
    answer(null, create(RangeResponseSchema, { kvs }));
    // In the middle of the turns that the answer takes.
    setTimeout(() => socket.destroy(), 1);
  };
  edge = await openHttpEdge({ Range: many });
  socket.connect(edge.port, "127.0.0.1", () => socket.write(post("/v3/kv/range", "{}")));
  await expect.poll(() => socket.destroyed).toBe(true);
  await expect.poll(() => hasFree(edge)).toBe(true);
  expect(edge.open.size).toBe(0);
});

test("an exception in a page ends its connection, and nothing else", async () => {
  const metrics = () => {
    throw new Error("a mistake");
  };
  edge = await openHttpEdge({}, { metrics });
  expect(await saying(edge.port, get("/metrics")).closed).toBe("");
  const { heard, socket } = saying(edge.port, get("/version"));
  await expect.poll(heard).toContain("200 OK");
  expect(hasFree(edge)).toBe(true);
  socket.destroy();
});

const long = Buffer.alloc(12_000_000, "A").toString();

/** A client that reads nothing before it has sent everything, as many do. */
async function saidBeforeHeard(port: number, words: string, thenMs = 0): Promise<string> {
  const socket = connect(port, "127.0.0.1").pause();
  socket.on("error", () => undefined);
  await new Promise<void>((resolve) => {
    socket.once("close", resolve);
    socket.write(words, () => resolve());
  });
  let heard = "";
  socket.on("data", (piece) => (heard += String(piece))).resume();
  await expect.poll(() => socket.destroyed || answersIn(heard).length === 1).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, thenMs));
  socket.write(get("/version"));
  await expect.poll(() => socket.destroyed || answersIn(heard).length === 2).toBe(true);
  socket.destroy();
  return heard;
}

test.each([
  ["too large", post("/v3/kv/put", `{"value":"${long}"}`)],
  ["no JSON", post("/v3/kv/put", `x${long}`)],
  ["a stream of no JSON", post("/v3/lease/keepalive", `x${long}`)],
  ["a watch that is too large", post("/v3/watch", `{"create_request":{"key":"${long}"}}`)],
  ["a watch that asks on with no JSON", post("/v3/watch", `{"create_request":{}}x${long}`)],
])("who says all before it reads, reads why it was refused, and may ask on: %s", async (_what, words) => {
  edge = await openHttpEdge();
  const [first, second] = answersIn(await saidBeforeHeard(edge.port, words));
  expect(first).toMatch(/request is too large|invalid character/);
  expect(second).toContain("etcdserver");
  expect(hasFree(edge)).toBe(true);
});

test("a connection stays open if the rest of a refused request arrives in time", async () => {
  edge = await openHttpEdge({}, { restMs: 1_000 });
  const refused = post("/v3/kv/put", "x".repeat(200_000));
  expect(answersIn(await saidBeforeHeard(edge.port, refused, 1_500)).length).toBe(2);
});

test("an endless refused request is read for a limited time", async () => {
  edge = await openHttpEdge({}, { restMs: 300 });
  const { closed, socket } = saying(edge.port, post("/v3/kv/put", "x", 99_000_000));
  const dripping = setInterval(() => socket.write("A".repeat(1_000)), 20);
  expect(answersIn(await closed)).toEqual([expect.stringContaining("400 Bad Request")]);
  clearInterval(dripping);
  await expect.poll(() => hasFree(edge)).toBe(true);
});

test.each(["end", "destroy"] as const)(
  "a disconnect (%s) is noticed even if the client has sent more than is read after its watch",
  async (go) => {
    edge = await openHttpEdge({ Watch: () => undefined as never }, { requestMs: 500 });
    const large = post("/v3/kv/put", `{"value":"${"A".repeat(1_000_000)}"}`);
    const { socket } = saying(edge.port, watch, large);
    await expect.poll(() => edge.open.size).toBe(1);
    socket[go]();
    await expect.poll(() => edge.open.size, { timeout: 5_000 }).toBe(0);
    expect(hasFree(edge)).toBe(true);
  },
);

test("a complete request waits for earlier ones without a timeout", async () => {
  const { answers, handler } = held();
  edge = await openHttpEdge({ Put: handler }, { requestMs: 300 });
  const { heard, socket } = saying(edge.port, put + put);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  answers[0]!();
  await expect.poll(() => answers.length).toBe(2);
  answers[1]!();
  await expect.poll(() => answersIn(heard()).length).toBe(2);
  socket.destroy();
});

test.each([
  ["an answer that has begun", watch, 1],
  ["one that is not answered yet", put, 0],
])("bytes that are no HTTP say nothing into %s", async (_what, words, answers) => {
  const handlers = answers === 1 ? {} : { Put: held().handler };
  edge = await openHttpEdge(handlers);
  const { heard, closed, socket } = saying(edge.port, words);
  await expect.poll(() => edge.open.size).toBe(1);
  await expect.poll(() => answersIn(heard()).length).toBe(answers);
  socket.write("HELLO\r\n\r\n");
  expect(answersIn(await closed).length).toBe(answers);
  expect(hasFree(edge)).toBe(true);
});

test("a request with invalid HTTP content gets an error response", async () => {
  edge = await openHttpEdge();
  const head = "POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect(await saying(edge.port, `${head}HELLO\r\n`).closed).toContain("400 Bad Request");
});

test("health and metrics are served on their own port even when clients have used up their room", async () => {
  edge = await openHttpEdge({}, { heldBytesMax: 100_000 });
  expect(edge.room.tryTake("greedy", 95_000)).toBe(true);
  const asked = [edge.port, edge.metricsPort].map((port) => saying(port, get("/health")));
  await expect.poll(asked[0]!.heard).toContain("429 Too Many Requests");
  await expect.poll(asked[1]!.heard).toContain("200 OK");
  for (const { socket } of asked) socket.destroy();
});
