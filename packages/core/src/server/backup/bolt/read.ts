import {
  bucketBytes,
  bucketFlag,
  elementBytes,
  headerBytes,
  kinds,
  type Meta,
  numberAt,
  readMeta,
} from "./format.js";

/** A file is not a bbolt database, or is damaged. */
export class BoltError extends Error {
  override readonly name = "BoltError";
}

/** A source of bytes. */
export interface Source {
  readonly bytes: number;
  /** Returns exactly these bytes, which must exist. */
  read(at: number, bytes: number): Buffer;
}

/** An element of a leaf. */
export interface Leaf {
  readonly key: Buffer;
  readonly value: Buffer;
  /** Whether its value is a bucket. */
  readonly isBucket: boolean;
}

interface Page {
  readonly id: number;
  readonly isLeaf: boolean;
  readonly elements: number;
  readonly bytes: Buffer;
}

const pageBytesMin = 1_024;
const pageBytesMax = 65_536;
/**
 * Bound of a tree's depth: a deeper one, with two children per branch, would have more pages than any file.
 */
const depthMax = 64;
/** Bound of the number of buckets, which are all read at once. etcd has ten. */
const bucketsMax = 1_000;
const nameBytesMax = 1_024;

/**
 * A bbolt database from any source. Nothing in it is trusted. Every page must be within the file, and is
 * visited at most once; every key and value must be within its page, after the one before; keys must be in
 * order. So no more is read than the length of the file.
 */
export class BoltFile {
  readonly #source: Source;
  readonly #meta: Meta;
  readonly #spanMax: number;
  /** Detects pages that are referenced twice, or by themselves. */
  readonly #seen: Uint8Array;

  /**
   * @param spanMax bound of a page with its overflow pages, bytes: they are read at once
   * @throws BoltError
   */
  constructor(source: Source, spanMax: number) {
    this.#source = source;
    this.#spanMax = spanMax;
    this.#meta = newestMeta(source);
    this.#seen = new Uint8Array(this.#meta.pages);
  }

  /** Length of all pages, including free ones. */
  get bytes(): number {
    return this.#meta.pages * this.#meta.pageBytes;
  }

  /**
   * Yields each bucket with its content, which can be iterated once.
   *
   * @throws BoltError
   */
  *buckets(): Generator<{ readonly name: string; readonly items: Iterable<Leaf> }> {
    let count = 0;
    for (const { isBucket, key, value } of inOrder(this.#items(this.#meta.root))) {
      if (!isBucket || value.length < bucketBytes)
        throw new BoltError("an entry of the root is not a bucket");
      count += 1;
      if (count > bucketsMax || key.length > nameBytesMax)
        throw new BoltError(`it has more than ${bucketsMax} buckets, or one with more than a name`);
      yield { name: key.toString("latin1"), items: this.#bucket(value) };
    }
  }

  *#bucket(value: Buffer): Generator<Leaf> {
    const root = numberAt(value, 0);
    const items = root === 0 ? leavesOf(inlinePage(value.subarray(bucketBytes))) : this.#items(root);
    for (const item of inOrder(items)) {
      if (item.isBucket) throw new BoltError("a bucket is within another one");
      yield item;
    }
  }

  *#items(root: number): Generator<Leaf> {
    // For each page above: its children, and the index of the next child.
    const path: { readonly children: readonly number[]; next: number }[] = [{ children: [root], next: 0 }];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const id = top.children[top.next];
      top.next += 1;
      if (id === undefined) {
        path.pop();
        continue;
      }
      const page = this.#page(id);
      if (!page.isLeaf) {
        if (path.length > depthMax) throw new BoltError(`page ${id} is nested too deeply`);
        path.push({ children: childrenOf(page), next: 0 });
        continue;
      }
      yield* leavesOf(page);
    }
  }

  #page(id: number): Page {
    const { pageBytes, pages } = this.#meta;
    if (id < 2 || id >= pages) throw new BoltError(`page ${id} is not in the file`);
    const first = this.#source.read(id * pageBytes, pageBytes);
    const more = first.readUInt32LE(12);
    if (id + more >= pages) throw new BoltError(`page ${id} extends beyond the end of the file`);
    const span = (more + 1) * pageBytes;
    if (span > this.#spanMax)
      throw new BoltError(`page ${id} has ${span} bytes, and ${this.#spanMax} at most are read at once`);
    for (let each = id; each <= id + more; each += 1) {
      if (this.#seen[each] !== 0) throw new BoltError(`page ${each} is in two places`);
      this.#seen[each] = 1;
    }
    return pageOf(id, more === 0 ? first : this.#source.read(id * pageBytes, span));
  }
}

/**
 * Returns the newer of the two meta pages. The second is one page after the first, whose content states the
 * page size. Only if the first is damaged is the second searched for; then the first match counts, since
 * later bytes are clients' values.
 */
function newestMeta(source: Source): Meta {
  const found: Meta[] = [];
  let isDamaged = false;
  const look = (at: number) => {
    if (at + pageBytesMin > source.bytes) return;
    const meta = readMeta(source.read(at, pageBytesMin));
    if (meta === "damaged") isDamaged = true;
    else if (meta !== "other" && (at === 0 || at === meta.pageBytes)) found.push(meta);
  };
  look(0);
  if (found.length > 0) look(found[0]!.pageBytes);
  else for (let at = pageBytesMin; found.length === 0 && at <= pageBytesMax; at *= 2) look(at);
  const newest = found.sort((one, other) => (one.transaction < other.transaction ? 1 : -1))[0];
  if (newest === undefined)
    throw new BoltError(isDamaged ? "its first pages are damaged" : "it is no database of etcd");
  const { pageBytes, pages } = newest;
  if (pageBytes < pageBytesMin || pageBytes > pageBytesMax || !Number.isInteger(Math.log2(pageBytes)))
    throw new BoltError(`pages of ${pageBytes} bytes are not supported`);
  if (pages * pageBytes > source.bytes)
    throw new BoltError(`it is cut off: it has ${source.bytes} of ${pages * pageBytes} bytes`);
  return newest;
}

function pageOf(id: number, bytes: Buffer): Page {
  const kind = bytes.readUInt16LE(8);
  const elements = bytes.readUInt16LE(10);
  if (numberAt(bytes, 0) !== id) throw new BoltError(`page ${id} has the number of another page`);
  if (kind !== kinds.leaf && kind !== kinds.branch)
    throw new BoltError(`page ${id} is of another kind (${kind})`);
  if (headerBytes + elements * elementBytes > bytes.length)
    throw new BoltError(`page ${id} has no room for ${elements} elements`);
  return { id, isLeaf: kind === kinds.leaf, elements, bytes };
}

/** Reads the page of a small bucket, which is inline instead of referenced by its number. */
function inlinePage(bytes: Buffer): Page {
  if (bytes.length < headerBytes) throw new BoltError("a bucket has no page");
  const page = pageOf(0, bytes);
  if (!page.isLeaf) throw new BoltError("an inline bucket has pages below it");
  return page;
}

/** Requires that keys are in order, each once. */
function* inOrder(items: Iterable<Leaf>): Generator<Leaf> {
  let last: Buffer | undefined;
  for (const item of items) {
    if (last !== undefined && Buffer.compare(last, item.key) >= 0)
      throw new BoltError(`the key ${item.key.toString("hex", 0, 64)} is not after the one before it`);
    last = item.key;
    yield item;
  }
}

function* leavesOf({ bytes, elements, id }: Page): Generator<Leaf> {
  const end = headerBytes + elements * elementBytes;
  let free = end;
  for (let at = headerBytes; at < end; at += elementBytes) {
    const keyAt = at + bytes.readUInt32LE(at + 4);
    const valueAt = keyAt + bytes.readUInt32LE(at + 8);
    const after = valueAt + bytes.readUInt32LE(at + 12);
    if (keyAt < end || after > bytes.length)
      throw new BoltError(`a key of page ${id} is not within the page`);
    if (keyAt < free) throw new BoltError(`a key of page ${id} overlaps the one before it`);
    free = after;
    const isBucket = bytes.readUInt32LE(at) === bucketFlag;
    yield { key: bytes.subarray(keyAt, valueAt), value: bytes.subarray(valueAt, after), isBucket };
  }
}

function childrenOf({ bytes, elements, id }: Page): number[] {
  if (elements === 0) throw new BoltError(`page ${id} has no pages below it`);
  return Array.from({ length: elements }, (_, index) =>
    numberAt(bytes, headerBytes + index * elementBytes + 8),
  );
}
