import { create } from "@bufbuild/protobuf";
import type { LeaseGrantResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import {
  type FindRequest,
  FindResponseSchema,
  type RegisterRequest,
  RegisterResponseSchema,
} from "leasehold/etcd/gen/leasehold/own_pb.js";
import { type AuthHandlers, answering } from "./auth.js";
import type { UnaryHandlers } from "./calls/header.js";

/** Leases by name, as in *Patterns of Distributed Systems*, "Lease". etcd does not have them. */
export function namedLeaseHandlers(auth: Pick<AuthHandlers, "ask">): UnaryHandlers {
  return {
    Register: answering(async (call) => {
      const { id, name, ttl: ttlSeconds } = call.request as RegisterRequest;
      const asked = { kind: "registerLease", request: { id, name, ttlSeconds } } as const;
      const { header, ID, TTL } = (await auth.ask(call, asked)) as LeaseGrantResponse;
      return create(RegisterResponseSchema, { header: header!, id: ID, ttl: TTL });
    }),
    Find: answering(async (call) => {
      const { name } = call.request as FindRequest;
      const asked = { kind: "findLease", request: { name } } as const;
      const { header, ID, TTL } = (await auth.ask(call, asked)) as LeaseGrantResponse;
      return create(FindResponseSchema, { header: header!, id: ID, grantedTtl: TTL });
    }),
  };
}
