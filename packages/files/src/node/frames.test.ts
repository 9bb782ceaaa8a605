import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { type Frame, FrameReader, writeFrame } from "./frames.js";

/** Frames with bodies of these lengths, each filled with its number. */
function sent(lengths: readonly number[]): Buffer {
  const chunks: Uint8Array[] = [];
  const socket = {
    cork: () => undefined,
    uncork: () => undefined,
    write: (chunk: Uint8Array) => chunks.push(chunk),
  };
  for (const [number, length] of lengths.entries())
    writeFrame(socket as unknown as Socket, { number, text: "ä" }, Buffer.alloc(length, number));
  return Buffer.concat(chunks);
}

const lengths = [0, 1, 16_384, 16_385, 65_000, 65_536, 70_000, 262_144, 262_144, 5, 2 ** 22];

test.each([1_000, 4_093, 65_536, Infinity])("frames of all sizes arrive in chunks of %d bytes", (size) => {
  const bytes = sent(lengths);
  const reader = new FrameReader();
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; at += size) frames.push(...reader.read(bytes.subarray(at, at + size)));
  expect(frames.map(({ head }) => head)).toEqual(lengths.map((_, number) => ({ number, text: "ä" })));
  // The frames are not released, so they keep their bytes.
  for (const [number, { body }] of frames.entries()) {
    expect(body).toHaveLength(lengths[number]!);
    expect(body.every((byte) => byte === number)).toBe(true);
  }
});

test("a body that is released is the next one's memory, and one that is kept is not", () => {
  const reader = new FrameReader();
  const bytes = sent([100_000, 100_000, 100_000]);
  const third = Math.floor(bytes.length / 3);
  const [first] = reader.read(bytes.subarray(0, third)) as [Frame];
  const copy = first.body.slice();
  first.release();
  const [second] = reader.read(bytes.subarray(third, 2 * third)) as [Frame];
  expect(second.body.buffer).toBe(first.body.buffer);
  expect(copy.every((byte) => byte === 0)).toBe(true);
  const [last] = reader.read(bytes.subarray(2 * third)) as [Frame];
  expect(last.body.buffer).not.toBe(second.body.buffer);
  expect(second.body.every((byte) => byte === 1)).toBe(true);
});

test("a frame that is longer than allowed is refused before it is gathered", () => {
  const lengthsOf = (head: number, body: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(head, 0);
    bytes.writeUInt32BE(body, 4);
    return bytes;
  };
  const mebibytes = 4 * 2 ** 20;
  expect(new FrameReader().read(lengthsOf(mebibytes, mebibytes))).toEqual([]);
  for (const bytes of [lengthsOf(mebibytes + 1, 0), lengthsOf(2, mebibytes + 1)])
    expect(() => new FrameReader().read(bytes)).toThrow("do not come from a node of files");
});
