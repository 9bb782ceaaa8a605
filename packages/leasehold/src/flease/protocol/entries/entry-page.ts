import type { Entry } from "./entry.js";
import type { OwnerNumbers } from "./owner-numbers.js";

/** Entries in a page. An operation on a whole page takes about ten microseconds. */
export const entriesPerPage = 512;

/** Growth factor of the space for names. */
const nameGrowth = 1.5;

/** An entry is five doubles followed by eight words, in one array with a view of each type. */
const doublesPerEntry = 9;
const wordsPerEntry = 2 * doublesPerEntry;
const promisedNumber = 0;
const leaseNumber = 1;
const leaseExpiresWallMs = 2;
const leaseExpiresMonoMs = 3;
const token = 4;
const leaseSequence = 10;
const promisedOwner = 11;
const leaseOwner = 12;
const barredOwner = 13;
const payer = 14;
const released = 15;
/** Offset of the name's first word; in a free slot, the next free slot. */
const nameStart = 16;
/** Length of the name in bytes; 0 in a free slot. */
const nameLength = 17;

const noSlot = 0xffff_ffff;

/** A name may begin with any character, even a byte order mark. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * A page of entries with their names, packed into typed arrays. The garbage collector visits three objects
 * instead of thousands, which would take half of a member's time.
 */
export class EntryPage {
  #doubles: Float64Array;
  #words: Uint32Array;
  /** The bytes of names, each aligned to a word and padded with zeros. */
  #names: Uint32Array;
  #nameBytes: Uint8Array;
  /** Offset for the next name, and the number of words before it that are in use. */
  #namesEnd = 0;
  #namesUsed = 0;
  /** The first slot that was never used; freed slots form a linked list. */
  #unused = 0;
  #firstFree = noSlot;
  #count = 0;

  /**
   * @param entries initial capacity in entries
   * @param nameBytes initial capacity for the bytes of their names
   */
  constructor(entries: number, nameBytes: number) {
    this.#doubles = new Float64Array(doublesPerEntry * entries);
    this.#words = new Uint32Array(this.#doubles.buffer);
    this.#names = new Uint32Array(wordsOf(nameBytes));
    this.#nameBytes = new Uint8Array(this.#names.buffer);
  }

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count === entriesPerPage;
  }

  /** Bytes reserved for names, used and free. */
  get namesBytes(): number {
    return this.#names.byteLength;
  }

  /** The first occupied slot at or after this one; -1 when there is none. */
  nextUsed(from: number): number {
    for (let slot = from; slot < this.#unused; slot += 1) if (this.nameBytesAt(slot) > 0) return slot;
    return -1;
  }

  nameBytesAt(slot: number): number {
    return this.#words[slot * wordsPerEntry + nameLength]!;
  }

  nameAt(slot: number): string {
    const start = this.#nameByte(slot);
    return decoder.decode(this.#nameBytes.subarray(start, start + this.nameBytesAt(slot)));
  }

  /** Whether the name there begins with these bytes. */
  nameBegins(slot: number, bytes: Uint8Array): boolean {
    if (this.nameBytesAt(slot) < bytes.length) return false;
    const names = this.#nameBytes;
    const start = this.#nameByte(slot);
    for (let at = 0; at < bytes.length; at += 1) if (names[start + at] !== bytes[at]) return false;
    return true;
  }

  /** Whether the name there has this length in bytes and these words. */
  nameIs(slot: number, name: Uint32Array, length: number): boolean {
    const base = slot * wordsPerEntry;
    if (this.#words[base + nameLength] !== length) return false;
    const names = this.#names;
    const start = this.#words[base + nameStart]!;
    const count = wordsOf(length);
    for (let at = 0; at < count; at += 1) if (names[start + at] !== name[at]) return false;
    return true;
  }

  /** Copies the words of the name there, and returns its length in bytes. */
  copyName(slot: number, into: Uint32Array): number {
    const start = this.#words[slot * wordsPerEntry + nameStart]!;
    const length = this.nameBytesAt(slot);
    for (let at = wordsOf(length) - 1; at >= 0; at -= 1) into[at] = this.#names[start + at]!;
    return length;
  }

  /**
   * Allocates a slot for an entry whose name has these words and this length in bytes. All other fields are
   * zero. The page must not be full.
   */
  take(name: Uint32Array, length: number): number {
    const slot = this.#freeSlot();
    const count = wordsOf(length);
    this.#reserveNameWords(count);
    const base = slot * wordsPerEntry;
    this.#words[base + nameStart] = this.#namesEnd;
    this.#words[base + nameLength] = length;
    for (let at = 0; at < count; at += 1) this.#names[this.#namesEnd + at] = name[at]!;
    this.#namesEnd += count;
    this.#namesUsed += count;
    this.#count += 1;
    return slot;
  }

  free(slot: number, owners: OwnerNumbers): void {
    const base = slot * wordsPerEntry;
    const words = this.#words;
    for (const field of [promisedOwner, leaseOwner, barredOwner]) owners.give(words[base + field]!);
    this.#namesUsed -= wordsOf(words[base + nameLength]!);
    words.fill(0, base, base + wordsPerEntry);
    words[base + nameStart] = this.#firstFree;
    this.#firstFree = slot;
    this.#count -= 1;
  }

  read(slot: number, into: Entry, owners: OwnerNumbers): Entry {
    const [doubles, words] = [this.#doubles, this.#words];
    const base = slot * doublesPerEntry;
    into.promisedNumber = doubles[base + promisedNumber]!;
    into.leaseNumber = doubles[base + leaseNumber]!;
    into.leaseExpiresWallMs = doubles[base + leaseExpiresWallMs]!;
    into.leaseExpiresMonoMs = doubles[base + leaseExpiresMonoMs]!;
    into.token = doubles[base + token]!;
    const word = slot * wordsPerEntry;
    into.leaseSequence = words[word + leaseSequence]!;
    into.promisedOwner = owners.owner(words[word + promisedOwner]!);
    into.leaseOwner = owners.owner(words[word + leaseOwner]!);
    into.barredOwner = owners.owner(words[word + barredOwner]!);
    into.payer = words[word + payer]!;
    into.released = words[word + released] === 1;
    return into;
  }

  write(slot: number, entry: Readonly<Entry>, owners: OwnerNumbers): void {
    const [doubles, words] = [this.#doubles, this.#words];
    const base = slot * doublesPerEntry;
    doubles[base + promisedNumber] = entry.promisedNumber;
    doubles[base + leaseNumber] = entry.leaseNumber;
    doubles[base + leaseExpiresWallMs] = entry.leaseExpiresWallMs;
    doubles[base + leaseExpiresMonoMs] = entry.leaseExpiresMonoMs;
    doubles[base + token] = entry.token;
    const word = slot * wordsPerEntry;
    words[word + leaseSequence] = entry.leaseSequence;
    this.#writeOwner(word + promisedOwner, entry.promisedOwner, owners);
    this.#writeOwner(word + leaseOwner, entry.leaseOwner, owners);
    this.#writeOwner(word + barredOwner, entry.barredOwner, owners);
    words[word + payer] = entry.payer;
    words[word + released] = entry.released ? 1 : 0;
  }

  #writeOwner(word: number, owner: string, owners: OwnerNumbers): void {
    const before = this.#words[word]!;
    if (owners.owner(before) === owner) return;
    this.#words[word] = owners.take(owner);
    owners.give(before);
  }

  #freeSlot(): number {
    const slot = this.#firstFree;
    if (slot !== noSlot) {
      this.#firstFree = this.#words[slot * wordsPerEntry + nameStart]!;
      return slot;
    }
    if (this.#unused * doublesPerEntry === this.#doubles.length) {
      const grown = new Float64Array(2 * this.#doubles.length);
      grown.set(this.#doubles);
      this.#doubles = grown;
      this.#words = new Uint32Array(grown.buffer);
    }
    this.#unused += 1;
    return this.#unused - 1;
  }

  /** The first byte of a name. */
  #nameByte(slot: number): number {
    return 4 * this.#words[slot * wordsPerEntry + nameStart]!;
  }

  /** Makes room for a name, first by reclaiming the space of removed names. */
  #reserveNameWords(more: number): void {
    if (this.#namesEnd + more <= this.#names.length) return;
    const [names, words] = [this.#names, this.#words];
    const needed = this.#namesUsed + more;
    this.#names = new Uint32Array(Math.ceil(needed * nameGrowth));
    this.#nameBytes = new Uint8Array(this.#names.buffer);
    let end = 0;
    for (let slot = this.nextUsed(0); slot !== -1; slot = this.nextUsed(slot + 1)) {
      const word = slot * wordsPerEntry;
      const start = words[word + nameStart]!;
      const count = wordsOf(words[word + nameLength]!);
      for (let at = 0; at < count; at += 1) this.#names[end + at] = names[start + at]!;
      words[word + nameStart] = end;
      end += count;
    }
    this.#namesEnd = end;
  }
}

/** Number of words for this many bytes. */
export function wordsOf(bytes: number): number {
  return (bytes + 3) >>> 2;
}
