import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BATCH_FRAME_BYTES_MAX, FrameDecoder, FrameKind, HANDSHAKE_FRAME_BYTES_MAX } from "./frame.js";
import { FrameError } from "./frame-error.js";

interface Frame {
  kind: number;
  body: string;
}

function frameBytes(kind: number, body: Uint8Array, length = body.length + 1): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length);
  head[4] = kind;
  return Buffer.concat([head, body]);
}

function collect(): { frames: Frame[]; decoder: FrameDecoder } {
  const frames: Frame[] = [];
  const decoder = new FrameDecoder((kind, bytes, start, end) => {
    frames.push({ kind, body: bytes.toString("hex", start, end) });
  });
  return { frames, decoder };
}

const largeKinds = Object.values(FrameKind).filter((kind) => kind !== FrameKind.call);
const small = fc.uint8Array({ maxLength: 30 });
const anyFrame = fc.oneof(
  fc.record({ kind: fc.constantFrom(...Object.values(FrameKind)), body: small }),
  fc.record({
    kind: fc.constantFrom(...largeKinds),
    body: fc.uint8Array({ minLength: 4000, maxLength: 9000 }),
  }),
);

describe("the frame decoder", () => {
  it("finds the same frames however the stream is cut into chunks", () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 12 }), fc.array(fc.nat({ max: 6000 })), (wanted, sizes) => {
        const stream = Buffer.concat(wanted.map(({ kind, body }) => frameBytes(kind, body)));
        const { frames, decoder } = collect();
        // One buffer for all chunks, as from a socket that always reads into the same one.
        const chunk = Buffer.alloc(6000);
        let offset = 0;
        for (const size of sizes) {
          const taken = stream.copy(chunk, 0, offset, offset + size);
          decoder.push(chunk, taken);
          offset += taken;
          chunk.fill(0xee);
        }
        decoder.push(stream.subarray(offset));
        expect(frames).toEqual(
          wanted.map(({ kind, body }) => ({ kind, body: Buffer.from(body).toString("hex") })),
        );
        expect(decoder.pendingBytes).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  it("finds the same frames in a stream cut at every byte", () => {
    const wanted = [
      frameBytes(4, Buffer.from("one")),
      frameBytes(1, Buffer.alloc(0)),
      frameBytes(6, Buffer.from("three")),
    ];
    const stream = Buffer.concat(wanted);
    const whole = collect();
    whole.decoder.push(stream);
    expect(whole.frames).toHaveLength(3);
    for (let first = 0; first <= stream.length; first += 1) {
      for (let second = first; second <= stream.length; second += 1) {
        const { frames, decoder } = collect();
        decoder.push(stream.subarray(0, first));
        decoder.push(stream.subarray(first, second));
        decoder.push(stream.subarray(second));
        expect(frames).toEqual(whole.frames);
      }
    }
  });

  const causeOf = (bytes: Buffer): string => {
    try {
      collect().decoder.push(bytes);
      return "none";
    } catch (error) {
      return error instanceof FrameError ? error.cause : String(error);
    }
  };

  it("refuses an impossible length at the prefix", () => {
    const prefix = (length: number) => frameBytes(0, Buffer.alloc(0), length).subarray(0, 4);
    for (const length of [0, BATCH_FRAME_BYTES_MAX + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
      expect(causeOf(prefix(length))).toBe("length");
    }
    expect(causeOf(prefix(1))).toBe("none");
    // "GET " read as a length: the beginning of a browser's request.
    expect(causeOf(Buffer.from("GET / HTTP/1.1\r\n"))).toBe("length");
  });

  it("refuses a length that this kind of frame cannot have, before its body arrives", () => {
    const head = (kind: number, length: number) => frameBytes(kind, Buffer.alloc(0), length);
    expect(causeOf(head(FrameKind.hello, HANDSHAKE_FRAME_BYTES_MAX + 1))).toBe("length");
    expect(causeOf(head(FrameKind.hello, HANDSHAKE_FRAME_BYTES_MAX))).toBe("none");
    expect(causeOf(head(FrameKind.batch, BATCH_FRAME_BYTES_MAX))).toBe("none");
  });

  it("refuses unknown kinds", () => {
    for (const kind of [0, 8, 100, 255]) expect(causeOf(frameBytes(kind, Buffer.alloc(3)))).toBe("kind");
  });

  it("keeps no more than has arrived, and releases a large buffer", () => {
    const { frames, decoder } = collect();
    const before = process.memoryUsage().arrayBuffers;
    const decoders = Array.from({ length: 500 }, () => new FrameDecoder(() => {}));
    for (const other of decoders)
      other.push(frameBytes(FrameKind.batch, Buffer.alloc(0), BATCH_FRAME_BYTES_MAX));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(500 * 8192);
    const large = frameBytes(FrameKind.batch, Buffer.alloc(BATCH_FRAME_BYTES_MAX - 1, 7));
    for (let offset = 0; offset < large.length; offset += 65_536)
      decoder.push(large.subarray(offset, offset + 65_536));
    expect(frames).toHaveLength(1);
    expect(decoder.pendingBytes).toBe(0);
  });

  it("delivers nothing after it has been stopped", () => {
    const seen: number[] = [];
    const decoder: FrameDecoder = new FrameDecoder((kind) => {
      seen.push(kind);
      decoder.stop();
    });
    decoder.push(Buffer.concat([frameBytes(4, Buffer.alloc(1)), frameBytes(5, Buffer.alloc(1))]));
    decoder.push(frameBytes(6, Buffer.alloc(1)));
    expect(seen).toEqual([4]);
  });
});
