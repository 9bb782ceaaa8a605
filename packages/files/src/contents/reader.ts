import type { Content } from "../names/types.js";
import { forEachOf } from "../protocol/each.js";
import { checkRange } from "../protocol/failures.js";
import { type Uploads, zerosTag } from "../protocol/uploads.js";

/** Blocks of one call that are read concurrently. */
const blocksAtOnce = 8;

/** Reads a content that never changes, from this node's disk or, what is missing there, from another's. */
export function fixedReader(
  uploads: Uploads,
  { id, size, blockSize }: Content,
): (offset: number, length: number) => Promise<Uint8Array> {
  return async (offset, length) => {
    checkRange(offset, length);
    const end = Math.min(size, offset + length);
    if (offset >= end) return new Uint8Array(0);
    const first = Math.floor(offset / blockSize);
    const count = Math.floor((end - 1) / blockSize) - first + 1;
    if (count === 1) {
      const block = await uploads.read(id, first);
      if (block.tag === zerosTag) return new Uint8Array(end - offset);
      return block.bytes.subarray(offset - first * blockSize, end - first * blockSize);
    }
    const bytes = new Uint8Array(end - offset);
    const indices = Array.from({ length: count }, (_, at) => first + at);
    await forEachOf(indices, blocksAtOnce, async (index) => {
      const block = await uploads.read(id, index);
      if (block.tag === zerosTag) return;
      const start = index * blockSize;
      const from = Math.max(offset, start);
      const to = Math.min(end, start + block.bytes.length);
      bytes.set(block.bytes.subarray(from - start, to - start), from - offset);
    });
    return bytes;
  };
}
