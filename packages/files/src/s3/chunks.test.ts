import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Chunked, chunkedOf, unchunked } from "./chunks.js";
import { S3Error } from "./errors.js";
import { hmac, type Seed, sha256 } from "./signature.js";

const seed: Seed = {
  key: Buffer.from("key"),
  date: "20261127T000000Z",
  scope: "20261127/r/s3/aws4_request",
  signature: "0".repeat(64),
};

/** A body as a client encodes it. */
function bodyOf(pieces: readonly Buffer[], kind: string, trailers: readonly string[] = []): Buffer {
  const isSigned = kind.startsWith("STREAMING-AWS4");
  const out: (Buffer | string)[] = [];
  let last = seed.signature;
  const sign = (name: string, ...hashes: readonly string[]): string => {
    last = hmac(seed.key, [name, seed.date, seed.scope, last, ...hashes].join("\n")).toString("hex");
    return last;
  };
  for (const piece of [...pieces.filter(({ length }) => length > 0), Buffer.alloc(0)]) {
    const hash = createHash("sha256").update(piece).digest("hex");
    const signature = isSigned
      ? `;chunk-signature=${sign("AWS4-HMAC-SHA256-PAYLOAD", sha256(""), hash)}`
      : "";
    out.push(`${piece.length.toString(16)}${signature}\r\n`);
    if (piece.length > 0) out.push(piece, "\r\n");
  }
  if (kind.endsWith("TRAILER")) {
    for (const trailer of trailers) out.push(`${trailer}\r\n`);
    const text = trailers.map((trailer) => `${trailer}\n`).join("");
    if (isSigned) out.push(`x-amz-trailer-signature:${sign("AWS4-HMAC-SHA256-TRAILER", sha256(text))}\r\n`);
  }
  out.push("\r\n");
  return Buffer.concat(out.map((each) => Buffer.from(each)));
}

async function* inPieces(body: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const places = [0, ...cuts.map((cut) => cut % (body.length + 1)), body.length].sort((a, b) => a - b);
  for (const [at, end] of places.entries()) if (at > 0) yield body.subarray(places[at - 1]!, end);
}

async function read(body: Buffer, how: Chunked, cuts: readonly number[] = []) {
  const trailer = new Map<string, string>();
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of unchunked(inPieces(body, cuts), how, trailer)) pieces.push(piece);
    return { code: "whole", bytes: Buffer.concat(pieces), trailer };
  } catch (error) {
    if (error instanceof S3Error) return { code: error.code, bytes: Buffer.concat(pieces), trailer };
    throw error;
  }
}

const kinds = [
  "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
  "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
  "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
];
const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 });

describe.each(kinds)("%s", (kind) => {
  const how = chunkedOf(kind, seed)!;
  const trailers = kind.endsWith("TRAILER") ? ["x-amz-checksum-crc32:AAAAAA==", "x-more:1"] : [];

  test("is read in whatever pieces it comes, and a changed byte of it is noticed", async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.array(fc.nat(), { maxLength: 5 }), fc.nat(), async (all, cuts, at) => {
        const content = Buffer.concat(all);
        const body = bodyOf(
          all.map((each) => Buffer.from(each)),
          kind,
          trailers,
        );
        const { code, bytes, trailer } = await read(body, how, cuts);
        expect([code, bytes.equals(content)]).toEqual(["whole", true]);
        expect([...trailer].map(([name, value]) => `${name}:${value}`)).toEqual(trailers);
        const wrong = Buffer.from(body);
        wrong[at % body.length]! ^= 1;
        const after = await read(wrong, how, cuts);
        // Without signatures, only checksums reveal changes within the content or the trailer.
        const isNoticed = after.code !== "whole" || !after.bytes.equals(content);
        // Sizes and trailer names may be written in upper case.
        const isSame = wrong.toString("latin1").toLowerCase() === body.toString("latin1").toLowerCase();
        expect(isNoticed || isSame || kind === kinds[2]).toBe(true);
        const cut = await read(body.subarray(0, at % body.length), how, cuts);
        expect(cut.code).not.toBe("whole");
        expect((await read(Buffer.concat([body, Buffer.from("x")]), how, cuts)).code).toBe("InvalidRequest");
      }),
      { numRuns: 200 },
    );
  });

  test("of whatever bytes it is whole or refused", async () => {
    const part = fc.oneof(
      fc.constantFrom("\r\n", "0", "5", ";chunk-signature=", "a".repeat(64), "x:", "hello"),
      fc.string({ maxLength: 5 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
        const { code } = await read(Buffer.from(parts.join("")), how);
        expect(["whole", "InvalidRequest", "IncompleteBody", "SignatureDoesNotMatch"]).toContain(code);
      }),
      { numRuns: 1_000 },
    );
  });
});

test("the first line of a chunk has at most 256 bytes, and trailers 4,096", async () => {
  const how = { seed: undefined, isSigned: false, hasTrailer: true };
  expect((await read(Buffer.from("0".repeat(300)), how)).code).toBe("InvalidRequest");
  const trailer = (length: number) => Buffer.from(`0\r\nx:${"v".repeat(length - 4)}\r\n\r\n`);
  expect((await read(trailer(4_094), how)).code).toBe("whole");
  expect((await read(trailer(4_097), how)).code).toBe("InvalidRequest");
});
