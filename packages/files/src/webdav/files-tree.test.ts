import { expect, test } from "vitest";
import type { FileView } from "../types.js";
import { piecesOf } from "./files-tree.js";

const kilobyte = 1_024;
const content = Buffer.alloc(3_000_001);
for (let at = 0; at < content.length; at += 4) content.writeUInt32LE(at, Math.min(at, content.length - 4));

function viewOf(pieceBytes: number | undefined) {
  const reads: (readonly [offset: number, length: number])[] = [];
  const view: FileView = {
    kind: "file",
    path: "f",
    size: content.length,
    version: "1",
    modifiedMs: 0,
    pieceBytes,
    read: async (offset, length) => {
      reads.push([offset, length]);
      return content.subarray(offset, offset + length);
    },
  };
  return { view, reads };
}

test.each([undefined, 512, 256 * kilobyte, 300_000, 4 * kilobyte * kilobyte])(
  "a range is read in pieces of blocks of %s",
  async (pieceBytes) => {
    for (const [offset, length] of [
      [0, content.length],
      [1, 700_000],
      [256 * kilobyte, 256 * kilobyte],
      [content.length - 5, 5],
      [7, 0],
    ] as const) {
      const { view, reads } = viewOf(pieceBytes);
      const got: Uint8Array[] = [];
      for await (const piece of piecesOf(view, offset, length)) got.push(piece);
      expect(Buffer.concat(got).equals(content.subarray(offset, offset + length))).toBe(true);
      if (pieceBytes !== 256 * kilobyte) continue;
      // Each read is within one block.
      for (const [at, bytes] of reads)
        expect(Math.floor(at / pieceBytes)).toBe(Math.floor((at + bytes - 1) / pieceBytes));
    }
  },
);

test("two megabytes are read ahead, and a file that has become shorter is refused", async () => {
  const { view, reads } = viewOf(256 * kilobyte);
  const pieces = piecesOf(view, 0, content.length + 1);
  await pieces.next();
  expect(reads).toHaveLength(8);
  const rest = async (): Promise<void> => {
    for await (const piece of pieces) expect(piece.length).toBeGreaterThan(0);
  };
  await expect(rest()).rejects.toMatchObject({ status: 409 });
});
