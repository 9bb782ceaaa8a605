import { create } from "@bufbuild/protobuf";
import type { KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  type RangeRequest,
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
  type RangeResponse,
  RangeResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CoreError } from "./errors.js";
import { keyOf, rangeOf } from "./keys.js";
import { keyValueLength, toKeyValue } from "./key-value.js";
import { type AnswerBudget, FoundVersions, isShort, ListedVersions, LongRange } from "./long-range.js";
import type { KeysView, Version } from "./revisions.js";
import { sortByLongComparison, sortInSteps, type Steps, unitsPerStep } from "./steps.js";
import { bytesOfValue, type Value } from "./values.js";
import { fieldLength } from "./wire-writer.js";

/**
 * Executes a range request. The answer has no header.
 *
 * @param current the revision that counts as the newest: within a write, its own
 */
export function* readRange(
  view: KeysView,
  request: RangeRequest,
  budget: AnswerBudget,
  current = view.current,
): Steps<RangeResponse> {
  const revision = readRevision(view, request, current);
  if (budget.isExceeded) return create(RangeResponseSchema);
  const looking = new Looking(view, request, revision, budget);
  let looked = 0;
  for (const version of versionsOf(view, request, revision)) {
    looked += 1;
    if (looked % unitsPerStep === 0) yield;
    looking.look(version);
    if (budget.isExceeded) return create(RangeResponseSchema);
  }
  return yield* looking.answer();
}

/** Intermediate result of a range request. */
class Looking {
  readonly #view: KeysView;
  readonly #request: RangeRequest;
  readonly #revision: number;
  readonly #budget: AnswerBudget;
  readonly #isWanted: (version: Version) => boolean;
  readonly #isSorted: boolean;
  /** Infinite without a limit. */
  readonly #limit: number;
  #count = 0;
  #wanted = 0;
  readonly #found: Version[] = [];
  /** Versions after those in `#found`, which remain few. */
  #rest: FoundVersions | undefined;
  /** Approximate bytes, in memory and encoded. */
  #bytes = 0;
  #encodedBytes = 0;

  constructor(view: KeysView, request: RangeRequest, revision: number, budget: AnswerBudget) {
    this.#view = view;
    this.#request = request;
    this.#revision = revision;
    this.#budget = budget;
    this.#isWanted = filterOf(request);
    this.#isSorted = isSorted(request);
    this.#limit = request.limit > 0n ? Number(request.limit) : Infinity;
  }

  look(version: Version | undefined): void {
    if (version !== undefined) this.#count += 1;
    if (version === undefined || this.#request.countOnly || !this.#isWanted(version)) {
      this.#rest?.pass();
      return;
    }
    this.#wanted += 1;
    if (this.#isSorted) this.#found.push(version);
    else if (this.#wanted <= this.#limit) this.#take(version);
  }

  #take(version: Version): void {
    if (!this.#budget.take(version)) return;
    this.#measure(version);
    const isKept = !this.#view.isFixed || isShort(this.#found.length + 1, this.#bytes);
    if (this.#rest === undefined && isKept) {
      this.#found.push(version);
      return;
    }
    this.#rest ??= new FoundVersions(this.#view, this.#revision, this.#isWanted, this.#found);
    this.#rest.add(version);
  }

  #measure(version: Version): void {
    const { keysOnly } = this.#request;
    this.#bytes += version.key.length + (keysOnly ? 0 : version.value.length);
    this.#encodedBytes += fieldLength(keyValueLength(version, keysOnly));
  }

  *answer(): Steps<RangeResponse> {
    const { keysOnly } = this.#request;
    const found = this.#isSorted ? yield* this.#inOrder() : this.#found;
    const fields = { more: this.#wanted > this.#limit, count: BigInt(this.#count) };
    if (this.#rest === undefined && isShort(found.length, this.#bytes)) {
      const kvs = found.map((version) => toKeyValue(version, keysOnly));
      return create(RangeResponseSchema, { ...fields, kvs });
    }
    const all = this.#rest ?? new ListedVersions(found);
    return new LongRange(fields, all, this.#encodedBytes, keysOnly, this.#view.lossesSince);
  }

  *#inOrder(): Steps<Version[]> {
    const found = yield* sort(this.#found, this.#request);
    if (found.length > this.#limit) found.length = this.#limit;
    for (let index = 0; index < found.length && this.#budget.take(found[index]!); index += 1) {
      this.#measure(found[index]!);
      if (index % unitsPerStep === 0) yield;
    }
    return found;
  }
}

/** Builds the filter of a request. 0 means no bound. */
function filterOf(request: RangeRequest): (version: Version) => boolean {
  const { maxCreateRevision, maxModRevision, minCreateRevision, minModRevision } = request;
  const most = (bound: bigint) => (bound === 0n ? Infinity : Number(bound));
  const [minModified, maxModified] = [Number(minModRevision), most(maxModRevision)];
  const [minCreated, maxCreated] = [Number(minCreateRevision), most(maxCreateRevision)];
  return ({ created, modified }) =>
    modified >= minModified && modified <= maxModified && created >= minCreated && created <= maxCreated;
}

/** Converts versions for clients, as many as fit. */
export function* keyValues(
  versions: readonly Version[],
  budget: AnswerBudget,
  keysOnly = false,
): Steps<KeyValue[]> {
  const kvs: KeyValue[] = [];
  for (const version of versions) {
    if (!budget.take(version)) break;
    kvs.push(toKeyValue(version, keysOnly));
    if (kvs.length % unitsPerStep === 0) yield;
  }
  return kvs;
}

/** The revision of a read. */
export function readRevision(view: KeysView, { revision }: RangeRequest, current = view.current): number {
  if (revision > BigInt(current)) throw new CoreError("futureRevision");
  if (revision <= 0n) return current;
  if (Number(revision) < view.compacted) throw new CoreError("compacted");
  return Number(revision);
}

function* versionsOf(
  view: KeysView,
  request: RangeRequest,
  revision: number,
): Generator<Version | undefined> {
  if (request.rangeEnd.length > 0) yield* view.range(rangeOf(request.key, request.rangeEnd), revision);
  else yield view.getAt(keyOf(request.key), revision);
}

/** Whether the result is in order anyway, as keys are read in ascending order. */
function isSorted({ sortOrder, sortTarget }: RangeRequest): boolean {
  return sortOrder === Order.DESCEND || sortTarget !== Target.KEY;
}

/** Sorting by anything but the key without an order means ascending, as in etcd. */
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

/** Bytes of two values compared in one step: some microseconds. Values may be equal up to their last byte. */
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
