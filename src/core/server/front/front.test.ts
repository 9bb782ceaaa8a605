import { connect as connect2, createServer as createServer2, type IncomingHttpHeaders } from "node:http2";
import { createServer as createServer1, get } from "node:http";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import { repairAuthority } from "./authority.js";
import { preface } from "./frames.js";
import { Front } from "./front.js";
import { HeaderBlocks } from "./header-blocks.js";
import { Opening, type Step } from "./opening.js";

/** RFC 7541, appendix B: what these tests say in the Huffman code. */
const codes: Record<string, string> = {
  h: "100111",
  t: "01001",
  p: "101011",
  ":": "1011100",
  "/": "011000",
  "-": "010110",
  ".": "010111",
  "0": "00000",
  "1": "00001",
  "2": "00010",
  "7": "011101",
  "3": "011001",
  "9": "011111",
  a: "00011",
  e: "00101",
  c: "00100",
  d: "100100",
  u: "101101",
  o: "00111",
  r: "101100",
  i: "00110",
  y: "1111010",
  "[": "1111111111011",
};

function coded(text: string): Buffer {
  const bits = [...text].map((character) => codes[character]).join("");
  const filled = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from((filled.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

function string(text: string, isCoded = false): Buffer {
  const content = isCoded ? coded(text) : Buffer.from(text);
  return Buffer.concat([Buffer.from([(isCoded ? 0x80 : 0) | content.length]), content]);
}

const bad = "http://127.0.0.1:2379";
const good = bad.replaceAll("/", "-");

test.each([
  ["indexed name, to be kept", Buffer.from([0x41])],
  ["indexed name, not to be kept", Buffer.from([0x01])],
  ["indexed name, never to be kept", Buffer.from([0x11])],
  ["its name", Buffer.concat([Buffer.from([0x40]), string(":authority")])],
  ["its name in Huffman code", Buffer.concat([Buffer.from([0x40]), string(":authority", true)])],
])("an authority with slashes gets hyphens and keeps its length: %s", (_, name) => {
  for (const isCoded of [false, true]) {
    const before = [Buffer.from([0x3f, 0xe1, 0x1f, 0x83]), Buffer.from([0x04]), string("/a/b", isCoded)];
    const block = (value: string) =>
      Buffer.concat([...before, name, string(value, isCoded), Buffer.from([0x86])]);
    for (const [from, to] of [
      [bad, good],
      ["http://etcd.a:1/", "http:--etcd.a:1-"],
      ["http://[", "http:--["],
    ] as const) {
      const bytes = block(from);
      expect(repairAuthority(bytes)).toBe(true);
      expect(bytes).toEqual(block(to));
    }
    const bytes = block("127.0.0.1:2379");
    expect(repairAuthority(bytes)).toBe(false);
    expect(bytes).toEqual(block("127.0.0.1:2379"));
  }
});

test("whatever a header block has, repairing it ends and a second time finds nothing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (block) => {
      repairAuthority(block);
      expect(repairAuthority(block)).toBe(false);
    }),
    { numRuns: 300 },
  );
});

function frame(type: number, flags: number, payload: Uint8Array, stream = 0): Buffer {
  const head = Buffer.from([0, 0, 0, type, flags, 0, 0, 0, 0]);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const settings = frame(4, 0, Buffer.from([0, 3, 0, 0, 0, 100]));
const acknowledged = frame(4, 1, Buffer.alloc(0));
const ping = frame(6, 0, Buffer.from("12345678"));
const data = (stream: number) => frame(0, 1, Buffer.from("some data"), stream);

/** A request, its block in so many frames; padded or with a priority. */
function request(
  stream: number,
  authority: Buffer,
  parts = 1,
  extra: "none" | "padded" | "priority" = "none",
): Buffer {
  const block = Buffer.concat([Buffer.from([0x83, 0x86, 0x04]), string("/call", true), authority]);
  const size = Math.ceil(block.length / parts);
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += size) {
    const end = at + size >= block.length ? 4 : 0;
    const part = block.subarray(at, at + size);
    if (at > 0) frames.push(frame(9, end, part, stream));
    else if (extra === "padded")
      frames.push(frame(1, end | 8, Buffer.concat([Buffer.from([3]), part, Buffer.alloc(3)]), stream));
    else if (extra === "priority")
      frames.push(frame(1, end | 0x20, Buffer.concat([Buffer.alloc(5), part]), stream));
    else frames.push(frame(1, end, part, stream));
  }
  return Buffer.concat(frames);
}

const kept = (authority: string, isCoded: boolean) =>
  Buffer.concat([Buffer.from([0x41]), string(authority, isCoded)]);
/** The entry that the dynamic table got last. */
const again = Buffer.from([0xbe]);

const requests = fc.record({
  parts: fc.integer({ min: 1, max: 5 }),
  extra: fc.constantFrom("none", "padded", "priority"),
  isCoded: fc.boolean(),
});
const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 });

/** The pieces that a connection may bring the bytes in. */
function pieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length]!;
    found.push(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return found;
}

test("blocks in any frames, in any pieces, are repaired, and all else goes on as it came", () => {
  fc.assert(
    fc.property(fc.array(requests, { minLength: 1, maxLength: 6 }), cuts, (all, sizes) => {
      const talk = (authority: string) =>
        Buffer.concat(
          all.flatMap(({ extra, isCoded, parts }, place) => [
            request(place * 2 + 1, kept(authority, isCoded), parts, extra),
            ping,
            data(place * 2 + 1),
          ]),
        );
      const blocks = new HeaderBlocks();
      const out = pieces(talk(bad), sizes).flatMap((piece) => blocks.take(piece));
      expect(Buffer.concat(out)).toEqual(talk(good));
    }),
    { numRuns: 150 },
  );
});

test("whatever comes that is no HTTP/2, no byte is lost and little is held", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), cuts, (noise, sizes) => {
      const blocks = new HeaderBlocks();
      const out = pieces(Buffer.from(noise), sizes).flatMap((piece) => blocks.take(piece));
      expect(Buffer.concat(out).length).toBeGreaterThanOrEqual(noise.length - 128 * 1024);
      expect(noise.length - Buffer.concat(out).length).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 150 },
  );
  const endless = new HeaderBlocks();
  const part = frame(9, 0, Buffer.alloc(16_000), 1);
  const flood = [frame(1, 0, Buffer.alloc(16_000), 1), ...Array.from({ length: 20 }, () => part)];
  const out = flood.flatMap((piece) => endless.take(Buffer.from(piece)));
  expect(Buffer.concat(out).length).toBe(Buffer.concat(flood).length);
});

test("a connection is handed on with its first request, without what the front has answered itself", () => {
  const words = fc.record({
    isBad: fc.boolean(),
    isEarly: fc.boolean(),
    request: requests,
    pings: fc.integer({ min: 0, max: 3 }),
  });
  fc.assert(
    fc.property(words, cuts, ({ isBad, isEarly, pings, request: { extra, isCoded, parts } }, sizes) => {
      const asked = (authority: string) =>
        Buffer.concat([request(1, kept(authority, isCoded), parts, extra), data(1)]);
      const authority = isBad ? bad : good;
      const order = isEarly ? [asked(authority), acknowledged] : [acknowledged, asked(authority)];
      const said = Buffer.concat([preface, settings, ...Array.from({ length: pings }, () => ping), ...order]);
      const opening = new Opening();
      const answers: Buffer[] = [];
      let last: Step | undefined;
      const rest = pieces(said, sizes);
      while (last?.kind !== "serve" && rest.length > 0) {
        last = opening.take(rest.shift()!);
        answers.push(...last.pongs);
      }
      if (last?.kind !== "serve") throw new Error("it is still held");
      expect(last.needsRepair).toBe(isBad);
      expect(answers).toEqual(Array.from({ length: pings }, () => frame(6, 1, Buffer.from("12345678"))));
      const served = Buffer.concat([last.bytes, ...rest]);
      expect(served).toEqual(Buffer.concat([preface, settings, asked(good)]));
    }),
    { numRuns: 150 },
  );
});

test("who does not speak HTTP/2, or says too much before the first request, is refused", () => {
  expect(new Opening().take(Buffer.from("PRI * HTTP/1")).kind).toBe("refuse");
  const long = Buffer.concat([preface, frame(0, 0, Buffer.alloc(16_385))]).subarray(0, 1_000);
  expect(new Opening().take(long).kind).toBe("refuse");
  const opening = new Opening();
  expect(opening.take(preface).kind).toBe("wait");
  const steps = Array.from({ length: 80 }, () => opening.take(frame(0, 0, Buffer.alloc(16_000), 1)).kind);
  expect([steps[0], steps.at(-1)]).toEqual(["wait", "refuse"]);
});

let port: number;
let front: Front;
let heard: IncomingHttpHeaders[];
beforeEach(async () => {
  [port] = (await freePorts(1)) as [number];
  heard = [];
  const http2 = createServer2();
  http2.on("stream", (stream, headers) => {
    heard.push(headers);
    stream.respond({ ":status": 200 });
    stream.end("two");
  });
  const http1 = createServer1((_request, response) => response.end("one"));
  front = new Front(
    {
      http1: (socket: Socket) => http1.emit("connection", socket),
      http2: (connection) => http2.emit("connection", connection),
    },
    100,
  );
  await front.listen({ host: "127.0.0.1", port, isTls: false }, undefined);
});
afterEach(() => {
  front.stop();
  front.close();
});

/** Until so many requests have been heard behind the front. */
async function until(count: number): Promise<void> {
  while (heard.length < count) await new Promise((resolve) => setImmediate(resolve));
}

test("HTTP/1.1 and HTTP/2 come to one port", async () => {
  const one = new Promise<string>((resolve) =>
    get({ host: "127.0.0.1", port, agent: false }, (answer) =>
      answer.setEncoding("utf8").on("data", resolve),
    ),
  );
  expect(await one).toBe("one");
  const session = connect2(`http://127.0.0.1:${port}`);
  for (const path of ["/a", "/b"]) {
    const stream = session.request({ ":path": path, ":method": "POST" });
    stream.end("x".repeat(100_000)).resume();
    await new Promise((resolve) => stream.once("end", resolve));
  }
  expect(heard.map(({ ":path": path }) => path)).toEqual(["/a", "/b"]);
  session.close();
});

test("a client of etcd 3.4 in Go is served, also when it says its authority by number later", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  const first = Buffer.concat([preface, settings, acknowledged, request(1, kept(bad, true), 2), data(1)]);
  socket.write(first.subarray(0, 40));
  socket.write(first.subarray(40));
  await until(1);
  // The acknowledgement of the settings of the server behind.
  socket.write(acknowledged);
  for (const stream of [3, 5]) socket.write(Buffer.concat([request(stream, again), data(stream)]));
  await until(3);
  socket.write(Buffer.concat([request(7, kept(bad, false), 3), data(7)]));
  await until(4);
  expect(heard.map(({ ":authority": authority }) => authority)).toEqual([good, good, good, good]);
  socket.destroy();
});
