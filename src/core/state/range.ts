import { create } from "@bufbuild/protobuf";
import { type KeyValue, KeyValueSchema } from "../gen/etcd/kv_pb.js";
import {
  type RangeRequest,
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
  type RangeResponse,
  RangeResponseSchema,
} from "../gen/etcd/rpc_pb.js";
import type { AnswerRoom } from "./answer-room.js";
import { CoreError } from "./errors.js";
import { keyOf, rangeOf } from "./keys.js";
import { type KeysView, type Version, keyValueFields } from "./revisions.js";
import { sortByLongComparison, sortInSteps, type Steps, unitsPerStep } from "./steps.js";
import { bytesOfValue, nothing, type Value } from "./values.js";

/**
 * Carries out a range request, without a header.
 *
 * @param current the revision that counts as the newest: inside of a write its own
 */
export function* readRange(
  view: KeysView,
  request: RangeRequest,
  room: AnswerRoom,
  current = view.current,
): Steps<RangeResponse> {
  const revision = readRevision(view, request, current);
  if (room.isExceeded) return create(RangeResponseSchema);
  let found: Version[] = [];
  const { min, max } = boundsOf(request);
  const limit = Number(request.limit);
  // Without filter and order only what is sent has to be kept.
  const keepMax = limit > 0 && !isSorted(request) ? limit : Infinity;
  let [count, looked] = [0, 0];
  for (const version of versionsOf(view, request, revision)) {
    looked += 1;
    if (looked % unitsPerStep === 0) yield;
    if (version === undefined) continue;
    count += 1;
    const isWanted =
      !request.countOnly &&
      version.modified >= min.modified &&
      version.modified <= max.modified &&
      version.created >= min.created &&
      version.created <= max.created;
    if (isWanted && found.length <= keepMax) found.push(version);
  }
  if (isSorted(request)) found = yield* sort(found, request);
  const more = limit > 0 && found.length > limit;
  if (more) found.length = limit;
  return create(RangeResponseSchema, {
    kvs: yield* keyValues(found, room, request.keysOnly),
    more,
    count: BigInt(count),
  });
}

/** As clients see them, as far as there is room. */
export function* keyValues(
  versions: readonly Version[],
  room: AnswerRoom,
  keysOnly = false,
): Steps<KeyValue[]> {
  const kvs: KeyValue[] = [];
  for (const version of versions) {
    if (!room.take(version)) break;
    kvs.push(toKeyValue(version, keysOnly));
    if (kvs.length % unitsPerStep === 0) yield;
  }
  return kvs;
}

/** The revision that a read is about. */
export function readRevision(view: KeysView, { revision }: RangeRequest, current = view.current): number {
  if (revision > BigInt(current)) throw new CoreError("futureRevision");
  if (revision <= 0n) return current;
  if (Number(revision) < view.compacted) throw new CoreError("compacted");
  return Number(revision);
}

export function toKeyValue(version: Version, keysOnly = false): KeyValue {
  return create(KeyValueSchema, keyValueFields(keysOnly ? { ...version, value: nothing } : version));
}

function* versionsOf(
  view: KeysView,
  request: RangeRequest,
  revision: number,
): Generator<Version | undefined> {
  if (request.rangeEnd.length > 0) yield* view.range(rangeOf(request.key, request.rangeEnd), revision);
  else yield view.getAt(keyOf(request.key), revision);
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
function sort(versions: Version[], { sortOrder, sortTarget }: RangeRequest): Steps<Version[]> {
  const isDescending = sortOrder === Order.DESCEND;
  if (sortTarget === Target.VALUE)
    return sortByLongComparison(versions, (a, b) =>
      isDescending ? compareValues(b.value, a.value) : compareValues(a.value, b.value),
    );
  const compare = comparisons.get(sortTarget);
  if (compare === undefined) throw new CoreError("invalidSortOption");
  return sortInSteps(versions, (a, b) => (isDescending ? compare(b, a) : compare(a, b)));
}

const comparisons = new Map<number, (a: Version, b: Version) => number>([
  [Target.KEY, (a, b) => (a.key < b.key ? -1 : 1)],
  [Target.VERSION, (a, b) => a.version - b.version],
  [Target.CREATE, (a, b) => a.created - b.created],
  [Target.MOD, (a, b) => a.modified - b.modified],
]);

/**
 * Of two values, so many bytes are compared in one step: some microseconds, as values may be alike up to
 * their last byte.
 */
const comparedBytesMax = 4 * 1024;

export function compareValues(one: Value, other: Value): number | Steps<number> {
  if (typeof one === "string" && typeof other === "string") return one < other ? -1 : one > other ? 1 : 0;
  const [a, b] = [bytesOfValue(one), bytesOfValue(other)];
  const length = Math.min(a.length, b.length);
  return length <= comparedBytesMax
    ? compareBytes(a, b, 0, length) || a.length - b.length
    : compareLong(a, b);
}

function* compareLong(a: Uint8Array, b: Uint8Array): Steps<number> {
  const length = Math.min(a.length, b.length);
  for (let start = 0; start < length; start += comparedBytesMax) {
    const difference = compareBytes(a, b, start, Math.min(start + comparedBytesMax, length));
    if (difference !== 0) return difference;
    yield;
  }
  return a.length - b.length;
}

function compareBytes(a: Uint8Array, b: Uint8Array, start: number, end: number): number {
  for (let index = start; index < end; index += 1) {
    const difference = a[index]! - b[index]!;
    if (difference !== 0) return difference;
  }
  return 0;
}
