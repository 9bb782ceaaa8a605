import { type Steps, unitsPerStep } from "../../../state/steps.js";
import { elementBytes, headerBytes, pageBytes, type PageKind, writeHeader } from "./format.js";

/** A key and its value. Their sizes are read first, and must not change until they are written. */
export interface Item {
  readonly keyBytes: number;
  readonly valueBytes: number;
  key(): Uint8Array;
  value(): Uint8Array;
}

/** Size and root of a tree of pages, known before anything is written. */
export interface TreePlan {
  readonly start: number;
  readonly pages: number;
  readonly root: number;
  /** For a tree of a single page: the length of that page without padding. */
  readonly bytes: number | undefined;
}

/** Fills pages. Both passes process the same elements, and so compute the same pages. */
class Filling {
  readonly #elementsMin: number;
  elements = 0;
  bytes = headerBytes;

  constructor(kind: PageKind) {
    // With one child per branch, a tree would never reach its root.
    this.#elementsMin = kind === "leaf" ? 1 : 2;
  }

  /** Whether an element of this size begins a new page. */
  isFullFor(bytes: number): boolean {
    return this.elements >= this.#elementsMin && this.bytes + elementBytes + bytes > pageBytes;
  }

  take(bytes: number): void {
    this.elements += 1;
    this.bytes += elementBytes + bytes;
  }

  get pages(): number {
    return Math.ceil(this.bytes / pageBytes);
  }
}

/** @param items in the order of their keys' bytes, each key once */
export function* planTree(items: Iterable<Item>, start: number): Steps<TreePlan> {
  let pages = 0;
  let filling = new Filling("leaf");
  let firstKeys: number[] = [];
  let count = 0;
  for (const { keyBytes, valueBytes } of items) {
    count += 1;
    if (count % unitsPerStep === 0) yield;
    if (filling.isFullFor(keyBytes + valueBytes)) {
      pages += filling.pages;
      filling = new Filling("leaf");
    }
    if (filling.elements === 0) firstKeys.push(keyBytes);
    filling.take(keyBytes + valueBytes);
  }
  const bytes = firstKeys.length > 1 ? undefined : filling.bytes;
  while (firstKeys.length > 1) {
    const children = firstKeys;
    firstKeys = [];
    pages += filling.pages;
    filling = new Filling("branch");
    for (const [index, keyBytes] of children.entries()) {
      if (index % unitsPerStep === 0) yield;
      if (filling.isFullFor(keyBytes)) {
        pages += filling.pages;
        filling = new Filling("branch");
      }
      if (filling.elements === 0) firstKeys.push(keyBytes);
      filling.take(keyBytes);
    }
  }
  return { start, pages: pages + filling.pages, root: start + pages, bytes };
}

/** An element of a page: of a leaf or a branch. */
interface Element {
  readonly key: Uint8Array;
  /** In a leaf. */
  readonly value: Uint8Array;
  readonly flags: number;
  /** In a branch: the page that begins with this key. */
  readonly child: number;
}

const none = new Uint8Array(0);

/** Yields the pages of a tree, ordered by id. A page with overflow is one buffer. */
export function* treePages(items: Iterable<Item>, start: number, flags = 0): Generator<Buffer> {
  let id = start;
  let level: Element[] = [];
  for (const page of pagesOf("leaf", elementsOf(items, flags))) {
    level.push({ key: page[0]?.key ?? none, value: none, flags: 0, child: id });
    const bytes = pageOf("leaf", id, page);
    id += bytes.length / pageBytes;
    yield bytes;
  }
  while (level.length > 1) {
    const children = level;
    level = [];
    for (const page of pagesOf("branch", children)) {
      level.push({ key: page[0]!.key, value: none, flags: 0, child: id });
      const bytes = pageOf("branch", id, page);
      id += bytes.length / pageBytes;
      yield bytes;
    }
  }
}

/** Makes a leaf that is itself a value, without padding. */
export function inlineLeaf(items: Iterable<Item>): Buffer {
  const elements = [...elementsOf(items, 0)];
  const bytes = elements.reduce(
    (sum, { key, value }) => sum + elementBytes + key.length + value.length,
    headerBytes,
  );
  return pageOf("leaf", 0, elements, bytes);
}

function* elementsOf(items: Iterable<Item>, flags: number): Generator<Element> {
  for (const item of items) {
    const [key, value] = [item.key(), item.value()];
    if (key.length !== item.keyBytes || value.length !== item.valueBytes)
      throw new Error("an item of a backup differs in size from its announcement");
    yield { key, value, flags, child: 0 };
  }
}

/** Yields the elements of each page; at least one page. */
function* pagesOf(kind: PageKind, elements: Iterable<Element>): Generator<Element[]> {
  let filling = new Filling(kind);
  let page: Element[] = [];
  for (const element of elements) {
    const bytes = element.key.length + element.value.length;
    if (filling.isFullFor(bytes)) {
      yield page;
      filling = new Filling(kind);
      page = [];
    }
    filling.take(bytes);
    page.push(element);
  }
  yield page;
}

function pageOf(kind: PageKind, id: number, elements: readonly Element[], bytes = spanOf(elements)): Buffer {
  const page = Buffer.alloc(bytes);
  writeHeader(page, id, kind, elements.length, Math.ceil(bytes / pageBytes) - 1);
  let at = headerBytes;
  let content = headerBytes + elements.length * elementBytes;
  for (const { child, flags, key, value } of elements) {
    // The offset of the key counts from the element itself.
    const offset = content - at;
    if (kind === "leaf") {
      page.writeUInt32LE(flags, at);
      page.writeUInt32LE(offset, at + 4);
      page.writeUInt32LE(key.length, at + 8);
      page.writeUInt32LE(value.length, at + 12);
    } else {
      page.writeUInt32LE(offset, at);
      page.writeUInt32LE(key.length, at + 4);
      page.writeBigUInt64LE(BigInt(child), at + 8);
    }
    page.set(key, content);
    page.set(value, content + key.length);
    content += key.length + value.length;
    at += elementBytes;
  }
  return page;
}

/** Number of bytes, in whole pages. */
function spanOf(elements: readonly Element[]): number {
  let bytes = headerBytes;
  for (const { key, value } of elements) bytes += elementBytes + key.length + value.length;
  return Math.ceil(bytes / pageBytes) * pageBytes;
}
