/**
 * The file format of bbolt, etcd's storage: pages, a tree of pages for each bucket, and two meta pages at the
 * beginning that locate the newest tree of all buckets. Numbers are little-endian.
 */

/** Page size in files written here. Other files state theirs. */
export const pageBytes = 4096;

/** Size of a page's header: id (8 bytes), kind (2), elements (2), overflow pages (4). */
export const headerBytes = 16;
export const kinds = { branch: 0x01, leaf: 0x02, meta: 0x04, freelist: 0x10 } as const;
export type PageKind = keyof typeof kinds;

/** Size of an element's header, in both kinds of tree pages. Keys and values follow the last header. */
export const elementBytes = 16;
/** Marks an element of a leaf whose value is a bucket. */
export const bucketFlag = 1;
/**
 * Size of a bucket as a value: id of its root page (8 bytes; 0: the page follows here), and a sequence (8).
 */
export const bucketBytes = 16;

const magic = 0xed0cdaed;
const version = 2;
const metaBytes = 64;
const checkedBytes = 56;

export interface Meta {
  readonly pageBytes: number;
  /** Root page of the bucket of all buckets. */
  readonly root: number;
  /** Number of pages, including free ones. */
  readonly pages: number;
  readonly transaction: bigint;
}

export function writeHeader(page: Buffer, id: number, kind: PageKind, elements: number, more: number): void {
  page.writeBigUInt64LE(BigInt(id), 0);
  page.writeUInt16LE(kinds[kind], 8);
  page.writeUInt16LE(elements, 10);
  page.writeUInt32LE(more, 12);
}

export function metaPage(id: number, freelist: number, meta: Meta): Buffer {
  const page = Buffer.alloc(meta.pageBytes);
  writeHeader(page, id, "meta", 0, 0);
  const body = page.subarray(headerBytes);
  body.writeUInt32LE(magic, 0);
  body.writeUInt32LE(version, 4);
  body.writeUInt32LE(meta.pageBytes, 8);
  body.writeBigUInt64LE(BigInt(meta.root), 16);
  body.writeBigUInt64LE(BigInt(freelist), 32);
  body.writeBigUInt64LE(BigInt(meta.pages), 40);
  body.writeBigUInt64LE(meta.transaction, 48);
  body.writeBigUInt64LE(fnv1a(body.subarray(0, checkedBytes)), checkedBytes);
  return page;
}

/** Decodes a meta page, or returns why it is not one. */
export function readMeta(page: Buffer): Meta | "other" | "damaged" {
  const body = page.subarray(headerBytes);
  if (body.length < metaBytes || body.readUInt32LE(0) !== magic) return "other";
  if (body.readBigUInt64LE(checkedBytes) !== fnv1a(body.subarray(0, checkedBytes))) return "damaged";
  if (body.readUInt32LE(4) !== version) return "other";
  const [root, pages] = [numberAt(body, 16), numberAt(body, 40)];
  return { pageBytes: body.readUInt32LE(8), root, pages, transaction: body.readBigUInt64LE(48) };
}

/** Reads a number. One that is too large to be exact is too large for any file. */
export function numberAt(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

function fnv1a(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
