import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  CompactionRequestSchema,
  DeleteRangeRequestSchema,
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { AlarmRequestSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { AuthCommand, ClientRequest } from "@leasehold/core/inner/replica/types.js";

/** Requests of a client. */
export const bytes = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(new TextEncoder().encode(text));
export const text = (content: Uint8Array): string => new TextDecoder().decode(content);

export function alarm(request: MessageInitShape<typeof AlarmRequestSchema> = {}): ClientRequest {
  return { kind: "alarm", request: create(AlarmRequestSchema, request) };
}

export function put(key: string, value: string, lease = 0n, prevKv = false): ClientRequest {
  const request = create(PutRequestSchema, { key: bytes(key), value: bytes(value), lease, prevKv });
  return { kind: "put", request };
}

export function range(key: string, more: MessageInitShape<typeof RangeRequestSchema> = {}): ClientRequest {
  return { kind: "range", request: create(RangeRequestSchema, { key: bytes(key), ...more }) };
}

export function remove(key: string): ClientRequest {
  return { kind: "deleteRange", request: create(DeleteRangeRequestSchema, { key: bytes(key) }) };
}

export function removeAll(key: string, rangeEnd: Uint8Array<ArrayBuffer>): ClientRequest {
  const request = create(DeleteRangeRequestSchema, { key: bytes(key), rangeEnd });
  return { kind: "deleteRange", request };
}

export function txn(request: MessageInitShape<typeof TxnRequestSchema>): ClientRequest {
  return { kind: "txn", request: create(TxnRequestSchema, request) };
}

export function compact(revision: bigint): ClientRequest {
  return { kind: "compact", request: create(CompactionRequestSchema, { revision }) };
}

export function grant(ttlSeconds: number, id = 0n): ClientRequest {
  const request = create(LeaseGrantRequestSchema, { TTL: BigInt(ttlSeconds), ID: id });
  return { kind: "leaseGrant", request };
}

export function register(name: string, ttlSeconds: number): ClientRequest {
  return { kind: "registerLease", request: { name, ttlSeconds: BigInt(ttlSeconds) } };
}

export function revoke(id: bigint): ClientRequest {
  return { kind: "leaseRevoke", request: create(LeaseRevokeRequestSchema, { ID: id }) };
}

export function keepAlive(id: bigint): ClientRequest {
  return { kind: "leaseKeepAlive", request: create(LeaseKeepAliveRequestSchema, { ID: id }) };
}

/** A change of users, roles and rights, or an authentication. */
export function auth(request: AuthCommand): ClientRequest {
  return { kind: "auth", request };
}

export function timeToLive(id: bigint, keys = false): ClientRequest {
  return { kind: "leaseTimeToLive", request: create(LeaseTimeToLiveRequestSchema, { ID: id, keys }) };
}
