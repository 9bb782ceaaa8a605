import { create } from "@bufbuild/protobuf";
import { KeyValueSchema } from "../gen/etcd/kv_pb.js";
import {
  type RangeRequest,
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
  type RangeResponse,
  RangeResponseSchema,
} from "../gen/etcd/rpc_pb.js";
import { CoreError } from "./errors.js";
import { type Key, keyOf, rangeOf } from "./keys.js";
import { type Revisions, type Version, keyValueFields, nothing } from "./revisions.js";

/** Carries out a range request, without a header. */
export function readRange(revisions: Revisions, request: RangeRequest): RangeResponse {
  const revision = readRevision(revisions, request);
  const found: Version[] = [];
  const { min, max } = boundsOf(request);
  const limit = Number(request.limit);
  // Without filter and order only what is sent has to be kept.
  const keepMax = limit > 0 && !isSorted(request) ? limit : Infinity;
  let count = 0;
  for (const version of versionsOf(revisions, request, revision)) {
    if (request.countOnly) {
      count += 1;
      continue;
    }
    count += 1;
    const isWanted =
      version.modified >= min.modified &&
      version.modified <= max.modified &&
      version.created >= min.created &&
      version.created <= max.created;
    if (isWanted && found.length <= keepMax) found.push(version);
  }
  if (isSorted(request)) sort(found, request);
  const more = limit > 0 && found.length > limit;
  const kvs = (more ? found.slice(0, limit) : found).map((version) => toKeyValue(version, request.keysOnly));
  return create(RangeResponseSchema, { kvs, more, count: BigInt(count) });
}

/** The revision that a read is about. */
export function readRevision(revisions: Revisions, { revision }: RangeRequest): number {
  if (revision > BigInt(revisions.current)) throw new CoreError("futureRevision");
  if (revision <= 0n) return revisions.current;
  if (Number(revision) < revisions.compacted) throw new CoreError("compacted");
  return Number(revision);
}

export function toKeyValue(version: Version, keysOnly = false): ReturnType<typeof makeKeyValue> {
  return makeKeyValue(keysOnly ? { ...version, value: nothing } : version);
}

function makeKeyValue(version: Version) {
  return create(KeyValueSchema, keyValueFields(version));
}

function* versionsOf(revisions: Revisions, request: RangeRequest, revision: number): Generator<Version> {
  if (request.rangeEnd.length > 0) {
    yield* revisions.range(rangeOf(request.key, request.rangeEnd), revision);
    return;
  }
  const key: Key = keyOf(request.key);
  const version = revision === revisions.current ? revisions.get(key) : revisions.getAt(key, revision);
  if (version !== undefined) yield version;
}

interface Bounds {
  readonly modified: number;
  readonly created: number;
}

/** Zero is no bound. */
function boundsOf(request: RangeRequest): { min: Bounds; max: Bounds } {
  const atMost = (bound: bigint) => (bound === 0n ? Infinity : Number(bound));
  return {
    min: { modified: Number(request.minModRevision), created: Number(request.minCreateRevision) },
    max: { modified: atMost(request.maxModRevision), created: atMost(request.maxCreateRevision) },
  };
}

/** Keys come in ascending order anyway. */
function isSorted({ sortOrder, sortTarget }: RangeRequest): boolean {
  return sortOrder === Order.DESCEND || sortTarget !== Target.KEY;
}

/** Any target but the key with no order given means ascending, as in etcd. */
function sort(versions: Version[], { sortOrder, sortTarget }: RangeRequest): void {
  const compare = comparisons.get(sortTarget);
  if (compare === undefined) throw new CoreError("invalidSortOption");
  const sign = sortOrder === Order.DESCEND ? -1 : 1;
  versions.sort((a, b) => sign * compare(a, b));
}

const comparisons = new Map<number, (a: Version, b: Version) => number>([
  [Target.KEY, (a, b) => (a.key < b.key ? -1 : 1)],
  [Target.VERSION, (a, b) => a.version - b.version],
  [Target.CREATE, (a, b) => a.created - b.created],
  [Target.MOD, (a, b) => a.modified - b.modified],
  [Target.VALUE, (a, b) => compareBytes(a.value, b.value)],
]);

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const difference = a[index]! - b[index]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
