import { create } from "@bufbuild/protobuf";
import { KeyValueSchema } from "../gen/etcd/kv_pb.js";
import { RangeRequest_SortOrder as Order, RangeRequest_SortTarget as Target, RangeResponseSchema, } from "../gen/etcd/rpc_pb.js";
import { CoreError } from "./errors.js";
import { keyOf, rangeOf } from "./keys.js";
import { keyValueFields, nothing } from "./revisions.js";
import { sortByLongComparison, sortInSteps, unitsPerStep } from "./steps.js";
/**
 * Carries out a range request, without a header.
 *
 * @param current the revision that counts as the newest: inside of a write its own
 */
export function* readRange(view, request, room, current = view.current) {
    const revision = readRevision(view, request, current);
    if (room.isExceeded)
        return create(RangeResponseSchema);
    let found = [];
    const { min, max } = boundsOf(request);
    const limit = Number(request.limit);
    // Without filter and order only what is sent has to be kept.
    const keepMax = limit > 0 && !isSorted(request) ? limit : Infinity;
    let [count, looked] = [0, 0];
    for (const version of versionsOf(view, request, revision)) {
        looked += 1;
        if (looked % unitsPerStep === 0)
            yield;
        if (version === undefined)
            continue;
        count += 1;
        const isWanted = !request.countOnly &&
            version.modified >= min.modified &&
            version.modified <= max.modified &&
            version.created >= min.created &&
            version.created <= max.created;
        if (isWanted && found.length <= keepMax)
            found.push(version);
    }
    if (isSorted(request))
        found = yield* sort(found, request);
    const more = limit > 0 && found.length > limit;
    if (more)
        found.length = limit;
    return create(RangeResponseSchema, {
        kvs: yield* keyValues(found, room, request.keysOnly),
        more,
        count: BigInt(count),
    });
}
/** As clients see them, as far as there is room. */
export function* keyValues(versions, room, keysOnly = false) {
    const kvs = [];
    for (const version of versions) {
        if (!room.take(version))
            break;
        kvs.push(toKeyValue(version, keysOnly));
        if (kvs.length % unitsPerStep === 0)
            yield;
    }
    return kvs;
}
/** The revision that a read is about. */
export function readRevision(view, { revision }, current = view.current) {
    if (revision > BigInt(current))
        throw new CoreError("futureRevision");
    if (revision <= 0n)
        return current;
    if (Number(revision) < view.compacted)
        throw new CoreError("compacted");
    return Number(revision);
}
export function toKeyValue(version, keysOnly = false) {
    return create(KeyValueSchema, keyValueFields(keysOnly ? { ...version, value: nothing } : version));
}
function* versionsOf(view, request, revision) {
    if (request.rangeEnd.length > 0)
        yield* view.range(rangeOf(request.key, request.rangeEnd), revision);
    else
        yield view.getAt(keyOf(request.key), revision);
}
/** Zero is no bound. */
function boundsOf(request) {
    const atMost = (bound) => (bound === 0n ? Infinity : Number(bound));
    return {
        min: { modified: Number(request.minModRevision), created: Number(request.minCreateRevision) },
        max: { modified: atMost(request.maxModRevision), created: atMost(request.maxCreateRevision) },
    };
}
/** Keys come in ascending order anyway. */
function isSorted({ sortOrder, sortTarget }) {
    return sortOrder === Order.DESCEND || sortTarget !== Target.KEY;
}
/** Any target but the key with no order given means ascending, as in etcd. */
function sort(versions, { sortOrder, sortTarget }) {
    const isDescending = sortOrder === Order.DESCEND;
    if (sortTarget === Target.VALUE)
        return sortByLongComparison(versions, (a, b) => isDescending ? compareValues(b.value, a.value) : compareValues(a.value, b.value));
    const compare = comparisons.get(sortTarget);
    if (compare === undefined)
        throw new CoreError("invalidSortOption");
    return sortInSteps(versions, (a, b) => (isDescending ? compare(b, a) : compare(a, b)));
}
const comparisons = new Map([
    [Target.KEY, (a, b) => (a.key < b.key ? -1 : 1)],
    [Target.VERSION, (a, b) => a.version - b.version],
    [Target.CREATE, (a, b) => a.created - b.created],
    [Target.MOD, (a, b) => a.modified - b.modified],
]);
/** Of two values, so many bytes are compared in one step: some microseconds, as values may be alike up to their last byte. */
const comparedBytesMax = 4 * 1024;
export function compareValues(a, b) {
    const length = Math.min(a.length, b.length);
    return length <= comparedBytesMax
        ? compareBytes(a, b, 0, length) || a.length - b.length
        : compareLong(a, b);
}
function* compareLong(a, b) {
    const length = Math.min(a.length, b.length);
    for (let start = 0; start < length; start += comparedBytesMax) {
        const difference = compareBytes(a, b, start, Math.min(start + comparedBytesMax, length));
        if (difference !== 0)
            return difference;
        yield;
    }
    return a.length - b.length;
}
function compareBytes(a, b, start, end) {
    for (let index = start; index < end; index++) {
        const difference = a[index] - b[index];
        if (difference !== 0)
            return difference;
    }
    return 0;
}
