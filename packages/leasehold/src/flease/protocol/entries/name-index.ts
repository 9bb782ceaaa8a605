/**
 * An index from names to positions by extendible hashing (Fagin et al., 1979). The first bits of a name's
 * hash choose a segment, in which the name is found by linear probing. A full segment is split in two, so the
 * index grows and shrinks in steps of a few microseconds, whatever its size. A single hash table would block
 * everything while it rehashes a million names.
 */

/**
 * Capacity of a full-size segment; a new one starts at an eighth. A segment is split when three quarters
 * full.
 */
const slotsMax = 1_024;
const slotsMin = 8;
const fillMax = 3 / 4;

/** Two halves are merged when they are this empty. */
const fillMin = 1 / 4;

/**
 * At most this many bits choose a segment: 16 million segments, enough for billions of names. Beyond that a
 * segment grows instead, as it does when many names have the same hash.
 */
const depthMax = 24;

/** Whether the name at a position is the wanted one. */
export interface SoughtName {
  isAt(position: number): boolean;
}

class Segment {
  /** For each slot the hash of a name, and its position plus one: 0 marks an empty slot. */
  slots: Int32Array;
  count = 0;
  /** Number of leading bits that its names' hashes have in common. */
  readonly depth: number;

  constructor(depth: number, slots: number) {
    this.depth = depth;
    this.slots = new Int32Array(2 * slots);
  }

  get size(): number {
    return this.slots.length / 2;
  }

  /** The slot of the wanted name; -1 when it isn't in this segment. */
  find(hash: number, sought: SoughtName): number {
    const { slots } = this;
    const mask = slots.length / 2 - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const place = slots[2 * slot + 1]!;
      if (place === 0) return -1;
      if (slots[2 * slot] === hash && sought.isAt(place - 1)) return slot;
    }
  }

  add(hash: number, place: number): void {
    const { slots } = this;
    const mask = slots.length / 2 - 1;
    let slot = hash & mask;
    while (slots[2 * slot + 1] !== 0) slot = (slot + 1) & mask;
    slots[2 * slot] = hash;
    slots[2 * slot + 1] = place;
    this.count += 1;
  }

  /** Empties a slot, and moves later entries that a probe would no longer find. */
  remove(slot: number): void {
    const { slots } = this;
    const mask = slots.length / 2 - 1;
    let hole = slot;
    for (let next = (slot + 1) & mask; slots[2 * next + 1] !== 0; next = (next + 1) & mask) {
      const home = slots[2 * next]! & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots[2 * hole] = slots[2 * next]!;
      slots[2 * hole + 1] = slots[2 * next + 1]!;
      hole = next;
    }
    slots[2 * hole + 1] = 0;
    this.count -= 1;
  }

  grow(): void {
    const { slots } = this;
    this.slots = new Int32Array(2 * slots.length);
    this.count = 0;
    this.#addAll(slots, () => this);
  }

  /** Redistributes its names to other segments. */
  divide(into: (hash: number) => Segment): void {
    this.#addAll(this.slots, into);
  }

  #addAll(slots: Int32Array, into: (hash: number) => Segment): void {
    for (let at = 0; at < slots.length; at += 2)
      if (slots[at + 1] !== 0) into(slots[at]!).add(slots[at]!, slots[at + 1]!);
  }
}

export class NameIndex {
  /**
   * Segments by the first `#depth` bits of a hash; a segment with fewer common bits appears several times.
   */
  #segments: Segment[] = [new Segment(0, slotsMin)];
  #depth = 0;

  get segments(): number {
    return new Set(this.#segments).size;
  }

  /** The position of the wanted name; -1 when it has none. */
  find(hash: number, sought: SoughtName): number {
    const segment = this.#segmentOf(hash);
    const slot = segment.find(hash, sought);
    return slot === -1 ? -1 : segment.slots[2 * slot + 1]! - 1;
  }

  /** Records the position of a new name with this hash. */
  add(hash: number, position: number): void {
    let segment = this.#segmentOf(hash);
    while (segment.count >= segment.size * fillMax) {
      if (segment.size < slotsMax || segment.depth === depthMax) segment.grow();
      else segment = this.#divide(segment, hash);
    }
    segment.add(hash, position + 1);
  }

  /** Removes the wanted name. */
  remove(hash: number, sought: SoughtName): void {
    const segment = this.#segmentOf(hash);
    segment.remove(segment.find(hash, sought));
    this.#merge(segment, hash);
  }

  #segmentOf(hash: number): Segment {
    return this.#segments[firstBits(hash, this.#depth)]!;
  }

  /** Splits a segment, and returns the half that the hash belongs to. */
  #divide(segment: Segment, hash: number): Segment {
    if (segment.depth === this.#depth) {
      this.#segments = this.#segments.flatMap((each) => [each, each]);
      this.#depth += 1;
    }
    const depth = segment.depth + 1;
    const halves = [new Segment(depth, slotsMax), new Segment(depth, slotsMax)] as const;
    const halfOf = (each: number) => halves[(firstBits(each, depth) & 1) as 0 | 1];
    segment.divide(halfOf);
    const first = firstBits(hash, segment.depth);
    this.#place(2 * first, halves[0]);
    this.#place(2 * first + 1, halves[1]);
    return halfOf(hash);
  }

  #merge(segment: Segment, hash: number): void {
    const { depth } = segment;
    if (depth === 0) return;
    const bits = firstBits(hash, depth);
    const other = this.#segments[(bits ^ 1) << (this.#depth - depth)]!;
    if (other.depth !== depth || segment.count + other.count > slotsMax * fillMin) return;
    const whole = new Segment(depth - 1, slotsMax);
    segment.divide(() => whole);
    other.divide(() => whole);
    this.#place(bits >>> 1, whole);
  }

  /** Puts a segment at every index whose hashes belong to it. */
  #place(bits: number, segment: Segment): void {
    const free = this.#depth - segment.depth;
    this.#segments.fill(segment, bits << free, (bits + 1) << free);
  }
}

function firstBits(hash: number, count: number): number {
  return (hash >>> 1) >>> (31 - count);
}

/**
 * The 32-bit hash of a name's words: MurmurHash3 with a secret seed, so that nobody can easily choose names
 * with equal hashes.
 */
export function hashOfWords(words: Uint32Array, count: number, seed: number): number {
  let hash = seed ^ count;
  for (let at = 0; at < count; at += 1) {
    const word = Math.imul(words[at]!, 0xcc9e2d51);
    hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b873593);
    hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
