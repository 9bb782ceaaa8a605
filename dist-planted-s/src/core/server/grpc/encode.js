import { create, toBinary } from "@bufbuild/protobuf";
import { DeleteRangeResponseSchema, LeaseLeasesResponseSchema, LeaseTimeToLiveResponseSchema, RangeResponseSchema, TxnResponseSchema, } from "../../gen/etcd/rpc_pb.js";
/** An answer that is bytes already. */
export class Encoded {
    bytes;
    constructor(bytes) {
        this.bytes = bytes;
    }
}
/** What is encoded, and copied, in one step. */
const stepItems = 64;
const stepBytes = 64 * 1024;
/** An answer with a list that may be long: which it is. */
const lists = {
    "etcdserverpb.RangeResponse": [RangeResponseSchema, "kvs"],
    "etcdserverpb.DeleteRangeResponse": [DeleteRangeResponseSchema, "prevKvs"],
    "etcdserverpb.LeaseTimeToLiveResponse": [LeaseTimeToLiveResponseSchema, "keys"],
    "etcdserverpb.LeaseLeasesResponse": [LeaseLeasesResponseSchema, "leases"],
};
/** It would keep the event loop for too long to encode it at once. */
export function isLarge(answer) {
    if (answer.$typeName === "etcdserverpb.TxnResponse")
        return answer.responses.length > 0 && answer.responses.some((operation) => isLargeOperation(operation));
    if (!isListing(answer))
        return false;
    const items = itemsOf(answer);
    if (items.length > stepItems)
        return true;
    let bytes = 0;
    for (const item of items)
        bytes += sizeOf(item);
    return bytes > stepBytes;
}
/** The same bytes as at once, or others that mean the same: in an encoded message, what a list has may stand in several parts. */
export function* encode(answer) {
    const parts = yield* partsOf(answer);
    const whole = Buffer.allocUnsafe(lengthOf(parts));
    let at = 0;
    for (const part of parts) {
        whole.set(part, at);
        at += part.length;
        yield;
    }
    return new Encoded(whole);
}
function* partsOf(answer) {
    if (answer.$typeName === "etcdserverpb.TxnResponse")
        return yield* partsOfTxn(answer);
    if (isListing(answer))
        return yield* partsOfList(answer);
    throw new TypeError(`${answer.$typeName} has no list`);
}
function* partsOfList(answer) {
    const [schema, name] = lists[answer.$typeName];
    const bytesOf = (fields) => toBinary(schema, Object.assign(create(schema), fields));
    const parts = [bytesOf({ ...answer, [name]: [] })];
    let some = [];
    let bytes = 0;
    for (const item of itemsOf(answer)) {
        some.push(item);
        bytes += sizeOf(item);
        if (some.length < stepItems && bytes < stepBytes)
            continue;
        parts.push(bytesOf({ [name]: some }));
        some = [];
        bytes = 0;
        yield;
    }
    parts.push(bytesOf({ [name]: some }));
    return parts;
}
/** Numbers of fields, and how a message inside of a message begins: number, kind and length. */
const responsesField = 3;
const operationFields = { responseRange: 1, responseDeleteRange: 3, responseTxn: 4 };
const lengthDelimited = 2;
function* partsOfTxn(answer) {
    const head = Object.assign(create(TxnResponseSchema), answer, { responses: [] });
    const parts = [toBinary(TxnResponseSchema, head)];
    for (const operation of answer.responses) {
        if (!isLargeOperation(operation)) {
            parts.push(toBinary(TxnResponseSchema, create(TxnResponseSchema, { responses: [operation] })));
            continue;
        }
        const { response } = operation;
        const field = operationFields[response.case];
        const inner = inside(field, yield* partsOf(response.value));
        for (const part of inside(responsesField, inner))
            parts.push(part);
    }
    return parts;
}
function isLargeOperation({ response }) {
    return response.value !== undefined && response.case !== "responsePut" && isLarge(response.value);
}
function inside(field, parts) {
    return [Uint8Array.from([field * 8 + lengthDelimited, ...varint(lengthOf(parts))]), ...parts];
}
function* varint(value) {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128))
        yield (rest % 128) + 128;
    yield rest;
}
function lengthOf(parts) {
    return parts.reduce((sum, part) => sum + part.length, 0);
}
function isListing(answer) {
    return answer.$typeName in lists;
}
function itemsOf(answer) {
    const [, name] = lists[answer.$typeName];
    return answer[name];
}
function sizeOf(item) {
    if (item instanceof Uint8Array)
        return item.length;
    return "value" in item ? item.key.length + item.value.length : 0;
}
