import { create } from "@bufbuild/protobuf";
import { type ResponseHeader, ResponseHeaderSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { CoreHost } from "../../../host/host.js";
import type { MemberId } from "../../../raft/types.js";
import type { UnaryHandler } from "../../wire/rpc/call.js";

/** Facts about a server for headers and status. */
export interface ClusterFacts {
  readonly cluster: bigint;
  readonly id: MemberId;
  /** Size of the data directory, bytes. */
  diskBytes(): number;
}

export type UnaryHandlers = Record<string, UnaryHandler>;

/** Returns the header of an answer that does not come from a command in the log. */
export function headerNow(host: CoreHost, { cluster, id }: ClusterFacts): ResponseHeader {
  const { revision, term } = host.status();
  return create(ResponseHeaderSchema, {
    clusterId: cluster,
    memberId: id,
    revision: BigInt(revision),
    raftTerm: BigInt(term),
  });
}
