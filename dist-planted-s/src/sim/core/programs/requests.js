import { create } from "@bufbuild/protobuf";
import { CompactionRequestSchema, DeleteRangeRequestSchema, LeaseGrantRequestSchema, LeaseKeepAliveRequestSchema, LeaseRevokeRequestSchema, LeaseTimeToLiveRequestSchema, PutRequestSchema, RangeRequestSchema, TxnRequestSchema, } from "../../../core/gen/etcd/rpc_pb.js";
/** Requests as a client writes them. */
export const bytes = (text) => Uint8Array.from(new TextEncoder().encode(text));
export const text = (content) => new TextDecoder().decode(content);
export function put(key, value, lease = 0n, prevKv = false) {
    const request = create(PutRequestSchema, { key: bytes(key), value: bytes(value), lease, prevKv });
    return { kind: "put", request };
}
export function range(key, more = {}) {
    return { kind: "range", request: create(RangeRequestSchema, { key: bytes(key), ...more }) };
}
export function remove(key) {
    return { kind: "deleteRange", request: create(DeleteRangeRequestSchema, { key: bytes(key) }) };
}
export function removeAll(key, rangeEnd) {
    const request = create(DeleteRangeRequestSchema, { key: bytes(key), rangeEnd });
    return { kind: "deleteRange", request };
}
export function txn(request) {
    return { kind: "txn", request: create(TxnRequestSchema, request) };
}
export function compact(revision) {
    return { kind: "compact", request: create(CompactionRequestSchema, { revision }) };
}
export function grant(ttlSeconds, id = 0n) {
    const request = create(LeaseGrantRequestSchema, { TTL: BigInt(ttlSeconds), ID: id });
    return { kind: "leaseGrant", request };
}
export function register(name, ttlSeconds) {
    return { kind: "registerLease", request: { name, ttlSeconds: BigInt(ttlSeconds) } };
}
export function revoke(id) {
    return { kind: "leaseRevoke", request: create(LeaseRevokeRequestSchema, { ID: id }) };
}
export function keepAlive(id) {
    return { kind: "leaseKeepAlive", request: create(LeaseKeepAliveRequestSchema, { ID: id }) };
}
export function timeToLive(id, keys = false) {
    return { kind: "leaseTimeToLive", request: create(LeaseTimeToLiveRequestSchema, { ID: id, keys }) };
}
