import type { Steps } from "../../../state/steps.js";
import { bucketBytes, bucketFlag, metaPage, pageBytes, writeHeader } from "./format.js";
import { inlineLeaf, type Item, planTree, type TreePlan, treePages } from "./tree.js";

/** The content under one name, ordered by the bytes of its keys. It can be iterated more than once. */
export interface Bucket {
  readonly name: string;
  items(): Iterable<Item>;
}

/** A bucket no larger than this has no page of its own (bbolt). */
const inlineBytesMax = pageBytes / 4;

/** Page number of the free list, which is empty. It follows the two meta pages. */
const freelist = 2;
const firstPage = 3;

/** The file counts as written by one transaction. The two meta pages must have different numbers. */
const transaction = 2n;

interface BucketPlan {
  readonly bucket: Bucket;
  readonly tree: TreePlan;
}

export interface DatabasePlan {
  readonly buckets: readonly BucketPlan[];
  readonly root: TreePlan;
  /** Length of the whole file. */
  readonly bytes: number;
}

/** Iterates over everything once, so that the first page can locate the rest. */
export function* planDatabase(buckets: readonly Bucket[]): Steps<DatabasePlan> {
  let next = firstPage;
  const plans: BucketPlan[] = [];
  for (const bucket of buckets) {
    const tree = yield* planTree(bucket.items(), next);
    plans.push({ bucket, tree });
    if (!isInline(tree)) next += tree.pages;
  }
  const root = yield* planTree(plans.map(itemOf), next);
  return { buckets: plans, root, bytes: (next + root.pages) * pageBytes };
}

/** Yields the file, page by page. */
export function* databasePages({ buckets, bytes, root }: DatabasePlan): Generator<Buffer> {
  const meta = { pageBytes, root: root.root, pages: bytes / pageBytes };
  yield metaPage(0, freelist, { ...meta, transaction });
  yield metaPage(1, freelist, { ...meta, transaction: transaction - 1n });
  const free = Buffer.alloc(pageBytes);
  writeHeader(free, freelist, "freelist", 0, 0);
  yield free;
  for (const { bucket, tree } of buckets) if (!isInline(tree)) yield* treePages(bucket.items(), tree.start);
  yield* treePages(buckets.map(itemOf), root.start, bucketFlag);
}

function isInline({ bytes }: TreePlan): boolean {
  return bytes !== undefined && bytes <= inlineBytesMax;
}

/** A bucket as an item of the bucket of all buckets. */
function itemOf({ bucket, tree }: BucketPlan): Item {
  const key = Buffer.from(bucket.name);
  return {
    keyBytes: key.length,
    valueBytes: bucketBytes + (isInline(tree) ? tree.bytes! : 0),
    key: () => key,
    value: () => {
      const head = Buffer.alloc(bucketBytes);
      if (isInline(tree)) return Buffer.concat([head, inlineLeaf(bucket.items())]);
      head.writeBigUInt64LE(BigInt(tree.root), 0);
      return head;
    },
  };
}
