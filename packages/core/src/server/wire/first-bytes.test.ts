import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { preface } from "../../http2/frames.js";
import { hearFirstWords } from "./first-bytes.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** The outcome of a connection on which these pieces arrive in order. */
async function outcomeOf(pieces: readonly Uint8Array[]) {
  const socket = new Duplex({ read: () => undefined, write: (_piece, _encoding, taken) => taken() });
  const heard: Buffer[] = [];
  const to: string[] = [];
  const take = (name: string) => (taken: Socket) => {
    to.push(name);
    taken.on("data", (piece: Buffer) => heard.push(piece));
  };
  hearFirstWords(socket as Socket, 60_000, { http1: take("http1"), http2: take("http2") });
  for (const piece of pieces) {
    socket.push(piece);
    await turn();
  }
  await turn();
  socket.destroy();
  await turn();
  return { to, heard: Buffer.concat(heard) };
}

const start = Buffer.from(preface);
const hello = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
const words = {
  "HTTP/2": Buffer.concat([preface, Buffer.alloc(9)]),
  "HTTP/1.1": Buffer.from("POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"),
  "a method like the preface's": Buffer.from("PROPFIND / HTTP/1.1\r\n\r\n"),
  TLS: hello,
  zeros: Buffer.alloc(20),
};

test.each(Object.entries(words))(
  "%s, split anywhere, is recognized and passed on completely",
  async (name, bytes) => {
    const to = [name === "HTTP/2" ? "http2" : "http1"];
    for (let at = 1; at < bytes.length; at += 1)
      expect(await outcomeOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual({ to, heard: bytes });
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await outcomeOf(single)).toEqual({ to, heard: bytes });
  },
);

test("no bytes are lost, however they are split, and one handler gets them all", async () => {
  const begun = fc.constantFrom(
    ...["", "P", "PR", "PRI", "PRI * HTTP/2.0\r\n", "GET"].map((text) => Buffer.from(text)),
  );
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 6 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(begun, pieces, async (first, rest) => {
      const all = first.length === 0 ? rest : [first, ...rest];
      const bytes = Buffer.concat(all);
      const isOpen = bytes.length < 3 && start.subarray(0, bytes.length).equals(bytes);
      const isHttp2 = bytes.subarray(0, 3).equals(start.subarray(0, 3));
      const expected = { to: [isHttp2 ? "http2" : "http1"], heard: bytes };
      expect(await outcomeOf(all)).toEqual(isOpen ? { to: [], heard: Buffer.alloc(0) } : expected);
    }),
    { numRuns: 100 * effort },
  );
});
