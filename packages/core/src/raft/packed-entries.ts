import type { ConfigChange, Entry } from "./types.js";

/** Number of entries packed at a time. */
export const packedAtOnce = 256;

/** Data of this length or more is not packed: an array's overhead is small in comparison. */
const largeBytes = 4_096;

/** Consecutive entries of one term without membership changes, or a single entry. */
interface Page {
  readonly first: number;
  readonly term: number;
  /** Only of a single entry. */
  readonly change: ConfigChange | undefined;
  /** The data of all entries. */
  readonly bytes: Uint8Array;
  /** End of each entry's data. */
  readonly ends: Uint32Array;
}

/**
 * Applied entries in order, kept for followers that are slightly behind. As objects, a hundred thousand
 * entries would take 50 MB in addition to their data, whatever the size of the state. They would also
 * fragment the heap: its pages are not released when the entries are dropped.
 */
export class PackedEntries {
  #pages: Page[] = [];

  /** @param entries the next entries of the log */
  add(entries: readonly Entry[]): void {
    for (let start = 0; start < entries.length;) {
      const end = endOfPage(entries, start);
      this.#pages.push(pageOf(entries.slice(start, end)));
      start = end;
    }
  }

  /** `index` must be that of a packed entry, here and in the other methods. */
  at(index: number): Entry {
    const { bytes, change, ends, first, term } = this.#pageOf(index);
    const data = bytes.subarray(ends[index - first - 1] ?? 0, ends[index - first]);
    return change === undefined
      ? { kind: "normal", index, term, data }
      : { kind: "config", index, term, change, data };
  }

  termAt(index: number): number {
    return this.#pageOf(index).term;
  }

  /** Length of the entry's data, bytes. */
  lengthAt(index: number): number {
    const { ends, first } = this.#pageOf(index);
    return ends[index - first]! - (ends[index - first - 1] ?? 0);
  }

  /** Drops entries before `index`, except possibly some. `Infinity` drops all. */
  forgetBefore(index: number): void {
    const kept = this.#pages.findIndex(({ ends, first }) => first + ends.length > index);
    this.#pages = kept === -1 ? [] : this.#pages.slice(kept);
  }

  #pageOf(index: number): Page {
    let [low, high] = [0, this.#pages.length];
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#pages[middle]!.first <= index) low = middle;
      else high = middle;
    }
    return this.#pages[low]!;
  }
}

function isAlone({ kind, data }: Entry): boolean {
  return kind === "config" || data.length >= largeBytes;
}

function endOfPage(entries: readonly Entry[], start: number): number {
  const first = entries[start]!;
  if (isAlone(first)) return start + 1;
  let end = start + 1;
  while (end < entries.length && !isAlone(entries[end]!) && entries[end]!.term === first.term) end += 1;
  return end;
}

function pageOf(entries: readonly Entry[]): Page {
  const [entry] = entries as [Entry];
  const { index: first, term, data } = entry;
  const change = entry.kind === "config" ? entry.change : undefined;
  const ends = new Uint32Array(entries.length);
  let length = 0;
  for (let place = 0; place < entries.length; place += 1) ends[place] = length += entries[place]!.data.length;
  if (entries.length === 1) return { first, term, change, bytes: data, ends };
  const bytes = new Uint8Array(length);
  for (let place = 0; place < entries.length; place += 1)
    bytes.set(entries[place]!.data, ends[place - 1] ?? 0);
  return { first, term, change, bytes, ends };
}
