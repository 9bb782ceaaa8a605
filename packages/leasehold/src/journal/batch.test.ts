import { expect, test } from "vitest";
import { SimRandom } from "@leasehold/sim/inner/kit/random.js";
import { effort } from "../../../../test/support/effort.js";
import { batchAt, isTorn, layBatch, sectorBytes } from "./batch.js";

/** Segments in memory, with batches of various contents at various positions. */
class Segment {
  readonly random: SimRandom;
  readonly bytes = Buffer.alloc(24 * sectorBytes);
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  #chain = 7;

  constructor(seed: number) {
    this.random = new SimRandom(seed);
    this.bytes.write("the head of it  ");
  }

  get end(): number {
    return this.ends.at(-1) ?? 16;
  }

  below(limit: number): number {
    return Math.floor(this.random.next() * limit);
  }

  add(lengthMax = 2_000): void {
    const length = this.below(lengthMax);
    const fill = [0, 0xff, undefined][this.below(3)];
    const content = Buffer.from(Array.from({ length }, () => fill ?? this.below(256)));
    const { bytes, checksum } = layBatch([content], this.#chain, this.end, this.starts.length + 1);
    this.starts.push(this.end);
    bytes.copy(this.bytes, this.end);
    this.ends.push(this.end + bytes.length);
    this.#chain = checksum;
  }
}

/** How far a segment can be read, and whether a power failure may have left what follows. */
function read(bytes: Buffer): { batches: number; isTorn: boolean } {
  let chain = 7;
  let offset = 16;
  for (let number = 1; ; number += 1) {
    const batch = batchAt(bytes, offset, chain, number);
    if (batch === undefined) return { batches: number - 1, isTorn: isTorn(bytes, offset, number) };
    ({ checksum: chain, end: offset } = batch);
  }
}

const seeds = Array.from({ length: 30 * effort }, (_, index) => index + 1);

test("a power failure leaves any sectors of a write: all of them are the batch, fewer are torn", () => {
  for (const seed of seeds) {
    const segment = new Segment(seed);
    for (let count = segment.below(4); count > 0; count -= 1) segment.add();
    segment.add();
    const number = segment.starts.length;
    const start = segment.starts.at(-1)!;
    const first = Math.floor(start / sectorBytes);
    const sectors = Math.ceil(segment.end / sectorBytes) - first;
    for (let landed = 0; landed < 2 ** sectors; landed += 1) {
      const bytes = Buffer.from(segment.bytes);
      for (let sector = 0; sector < sectors; sector += 1)
        if ((landed & (1 << sector)) === 0)
          bytes.fill(0, Math.max(start, (first + sector) * sectorBytes), (first + sector + 1) * sectorBytes);
      const isAll = landed === 2 ** sectors - 1;
      const isNone = landed === 0;
      const expected = { batches: isAll ? number : number - 1, isTorn: !isAll };
      // If every sector or none was written, the zeros after the last batch are unused space.
      expect(isNone || isAll ? { ...read(bytes), isTorn: !isAll } : read(bytes)).toEqual(expected);
    }
  }
});

test("one to three flipped bits in a written batch are never a torn write", () => {
  for (const seed of seeds) {
    const segment = new Segment(seed);
    for (let count = 1 + segment.below(5); count > 0; count -= 1) segment.add(seed % 2 === 0 ? 60 : 2_000);
    for (let time = 0; time < 100; time += 1) {
      const bytes = Buffer.from(segment.bytes);
      const at = 16 + segment.below(segment.end - 16);
      for (let bits = 1 + segment.below(3); bits > 0; bits -= 1)
        bytes[Math.min(at + segment.below(3), segment.end - 1)]! ^= 1 << segment.below(8);
      if (bytes.equals(segment.bytes)) continue;
      const bad = segment.ends.findIndex((end) => bytes.compare(segment.bytes, 16, end, 16, end) !== 0);
      expect(read(bytes), `seed ${seed}`).toEqual({ batches: bad, isTorn: false });
    }
  }
});

test("sectors that were lost before anything of a later write are never a torn write", () => {
  let looked = 0;
  for (const seed of seeds) {
    const segment = new Segment(seed);
    const isSmall = seed % 2 === 0;
    while (segment.end < segment.bytes.length - 2_600) segment.add(isSmall ? 60 : 2_000);
    for (let time = 0; time < 30; time += 1) {
      const bytes = Buffer.from(segment.bytes);
      const from = 1 + segment.below(segment.end / sectorBytes - 1);
      const to = from + 1 + segment.below(8);
      bytes.fill(0, from * sectorBytes, Math.min(to * sectorBytes, bytes.length));
      const bad = segment.ends.findIndex((end) => bytes.compare(segment.bytes, 16, end, 16, end) !== 0);
      const end = segment.ends[bad]!;
      if (bad === -1 || bytes.subarray(end).every((byte) => byte === 0)) continue;
      looked += 1;
      expect(read(bytes), `seed ${seed}`).toEqual({ batches: bad, isTorn: false });
    }
  }
  expect(looked).toBeGreaterThan(seeds.length);
});
