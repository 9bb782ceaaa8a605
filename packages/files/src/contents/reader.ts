import type { Content, Part } from "../names/types.js";
import { forEachOf } from "../protocol/each.js";
import { checkRange } from "../protocol/failures.js";
import { type Uploads, type Where, zerosTag } from "../protocol/uploads.js";

/** Blocks of one call read concurrently. */
const blocksAtOnce = 8;

type Read = (offset: number, length: number) => Promise<Uint8Array>;

/**
 * Reads an immutable content from this node's disk or, where blocks are missing, from other nodes.
 * @param nodes those that have any of it
 */
export function fixedReader(uploads: Uploads, content: Content, nodes: readonly string[]): Read {
  const { parts } = content;
  if (parts === undefined) return partReader(uploads, content, { nodes, keeps: true });
  const wheres = parts.map((): Where => ({ nodes, keeps: false }));
  const ends: number[] = [];
  for (const { size } of parts) ends.push((ends.at(-1) ?? 0) + size);
  return async (offset, length) => {
    checkRange(offset, length);
    const end = Math.min(content.size, offset + length);
    if (offset >= end) return new Uint8Array(0);
    const bytes = new Uint8Array(end - offset);
    for (let index = firstAfter(ends, offset), at = offset; at < end; index += 1) {
      const part = parts[index]!;
      const start = ends[index]! - part.size;
      const piece = Math.min(end, ends[index]!) - at;
      bytes.set(await partReader(uploads, part, wheres[index]!)(at - start, piece), at - offset);
      at += piece;
    }
    return bytes;
  };
}

/** The index of the first of these ascending numbers that is greater than the given one. */
function firstAfter(ends: readonly number[], offset: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

function partReader(uploads: Uploads, { id, size, blockSize }: Part, where: Where): Read {
  return async (offset, length) => {
    checkRange(offset, length);
    const end = Math.min(size, offset + length);
    if (offset >= end) return new Uint8Array(0);
    const first = Math.floor(offset / blockSize);
    const count = Math.floor((end - 1) / blockSize) - first + 1;
    if (count === 1) {
      const block = await uploads.read(id, first, where);
      if (block.tag === zerosTag) return new Uint8Array(end - offset);
      return block.bytes.subarray(offset - first * blockSize, end - first * blockSize);
    }
    const bytes = new Uint8Array(end - offset);
    const indices = Array.from({ length: count }, (_, at) => first + at);
    await forEachOf(indices, blocksAtOnce, async (index) => {
      const block = await uploads.read(id, index, where);
      if (block.tag === zerosTag) return;
      const start = index * blockSize;
      const from = Math.max(offset, start);
      const to = Math.min(end, start + block.bytes.length);
      bytes.set(block.bytes.subarray(from - start, to - start), from - offset);
    });
    return bytes;
  };
}
