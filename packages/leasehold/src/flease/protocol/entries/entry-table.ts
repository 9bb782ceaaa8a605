import { emptyEntry } from "./entry.js";
import type { Entry } from "./entry.js";
import { entriesPerPage, EntryPage, wordsOf } from "./entry-page.js";
import { hashOfWords, NameIndex } from "./name-index.js";
import type { SoughtName } from "./name-index.js";
import { OwnerNumbers } from "./owner-numbers.js";
import { resourceNameBytesMax } from "../../../lease/resource-name.js";

const encoder = new TextEncoder();

const pageBits = Math.log2(entriesPerPage);

/**
 * The entries of an acceptor, keyed by resource name: a map that takes about a hundred bytes for each and
 * gives the garbage collector nothing to visit (`entry-page.ts`). No operation takes longer as the table
 * grows (`name-index.ts`). An entry is handed out as a copy; a change takes effect when the entry is put back
 * with `set`.
 */
export class EntryTable implements SoughtName {
  readonly #seed: number;
  readonly #index = new NameIndex();
  readonly #owners = new OwnerNumbers();
  readonly #pages: (EntryPage | undefined)[] = [];
  /** Pages with free slots, including pages that do not exist yet. The last is filled first. */
  readonly #open: number[] = [];
  #size = 0;
  /**
   * The name looked up last: its bytes padded with zeros to a full word, their hash, and its position, -1 if
   * absent.
   */
  #name: string | undefined;
  readonly #words = new Uint32Array(wordsOf(resourceNameBytesMax));
  readonly #bytes = new Uint8Array(this.#words.buffer);
  #length = 0;
  #hash = 0;
  #position = -1;

  /** @param seed of the hashes of names; it must be unknown to whoever chooses the names. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  get size(): number {
    return this.#size;
  }

  /** Number of distinct owners in its entries. */
  get owners(): number {
    return this.#owners.size;
  }

  /** Copies the entry of this name into a record. `undefined` when there is none. */
  get(name: string, into: Entry): Entry | undefined {
    this.#seek(name);
    return this.#position === -1 ? undefined : this.read(this.#position, into);
  }

  set(name: string, entry: Readonly<Entry>): void {
    this.#seek(name);
    if (this.#position === -1) this.#insert();
    this.#page(this.#position).write(slotIn(this.#position), entry, this.#owners);
  }

  /** Length of a name in UTF-8 bytes. */
  nameBytes(name: string): number {
    this.#seek(name);
    return this.#length;
  }

  cursor(): EntryCursor {
    return new EntryCursor(this);
  }

  // By position, for cursors: an entry never moves.

  /** The first occupied position at or after this one; -1 when there is none. */
  nextUsed(from: number): number {
    for (let number = pageOf(from); number < this.#pages.length; number += 1) {
      const first = number * entriesPerPage;
      const slot = this.#pages[number]?.nextUsed(Math.max(0, from - first)) ?? -1;
      if (slot !== -1) return first + slot;
    }
    return -1;
  }

  read(position: number, into: Entry): Entry {
    return this.#page(position).read(slotIn(position), into, this.#owners);
  }

  nameAt(position: number): string {
    return this.#page(position).nameAt(slotIn(position));
  }

  nameBytesAt(position: number): number {
    return this.#page(position).nameBytesAt(slotIn(position));
  }

  nameBegins(position: number, bytes: Uint8Array): boolean {
    return this.#page(position).nameBegins(slotIn(position), bytes);
  }

  delete(position: number): void {
    const number = pageOf(position);
    const page = this.#page(position);
    this.#length = page.copyName(slotIn(position), this.#words);
    this.#hash = hashOfWords(this.#words, wordsOf(this.#length), this.#seed);
    this.#name = undefined;
    this.#index.remove(this.#hash, this);
    if (page.isFull) this.#open.push(number);
    page.free(slotIn(position), this.#owners);
    this.#size -= 1;
    if (page.count === 0) this.#pages[number] = undefined;
  }

  /** Whether the name at this position is the wanted one. */
  isAt(position: number): boolean {
    return this.#page(position).nameIs(slotIn(position), this.#words, this.#length);
  }

  #seek(name: string): void {
    if (name === this.#name) return;
    this.#name = name;
    this.#length = this.#encode(name);
    this.#hash = hashOfWords(this.#words, wordsOf(this.#length), this.#seed);
    this.#position = this.#index.find(this.#hash, this);
  }

  #encode(name: string): number {
    const [words, bytes] = [this.#words, this.#bytes];
    let { length } = name;
    // The last word first: its unused bytes are zero.
    words[wordsOf(length) - 1] = 0;
    for (let at = 0; at < length; at += 1) {
      const code = name.charCodeAt(at);
      if (code >= 0x80) {
        length = encoder.encodeInto(name, bytes).written;
        for (let end = length; end % 4 > 0; end += 1) bytes[end] = 0;
        break;
      }
      bytes[at] = code;
    }
    return length;
  }

  #insert(): void {
    const number = this.#open.at(-1) ?? this.#addPage();
    const page = (this.#pages[number] ??= this.#newPage());
    this.#position = number * entriesPerPage + page.take(this.#words, this.#length);
    if (page.isFull) this.#open.pop();
    this.#index.add(this.#hash, this.#position);
    this.#size += 1;
  }

  /** The first page is small, as most tables are. It shows later pages how long names are. */
  #newPage(): EntryPage {
    const first = this.#pages[0];
    return first?.isFull === true ? new EntryPage(entriesPerPage, first.namesBytes) : new EntryPage(4, 64);
  }

  #addPage(): number {
    this.#open.push(this.#pages.length);
    return this.#pages.push(undefined) - 1;
  }

  #page(position: number): EntryPage {
    return this.#pages[pageOf(position)]!;
  }
}

function pageOf(position: number): number {
  return position >>> pageBits;
}

function slotIn(position: number): number {
  return position & (entriesPerPage - 1);
}

/**
 * A cursor over the entries. An entry that exists throughout is visited once; one that is added or removed
 * meanwhile may be visited or not.
 */
export class EntryCursor {
  readonly #table: EntryTable;
  #position = -1;

  constructor(table: EntryTable) {
    this.#table = table;
  }

  /** Goes to the next entry. False at the end. */
  next(): boolean {
    const position = this.#table.nextUsed(this.#position + 1);
    if (position === -1) return false;
    this.#position = position;
    return true;
  }

  *[Symbol.iterator](): Generator<[string, Entry], void> {
    while (this.next()) yield [this.name, this.read(emptyEntry())];
  }

  get name(): string {
    return this.#table.nameAt(this.#position);
  }

  get nameBytes(): number {
    return this.#table.nameBytesAt(this.#position);
  }

  nameBegins(bytes: Uint8Array): boolean {
    return this.#table.nameBegins(this.#position, bytes);
  }

  read(into: Entry): Entry {
    return this.#table.read(this.#position, into);
  }

  delete(): void {
    this.#table.delete(this.#position);
  }
}
