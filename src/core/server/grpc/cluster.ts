import { create } from "@bufbuild/protobuf";
import type { handleUnaryCall } from "@grpc/grpc-js";
import {
  AlarmRequest_AlarmAction as Action,
  type AlarmRequest,
  AlarmResponseSchema,
  MemberListResponseSchema,
  StatusResponseSchema,
} from "../../gen/etcd/cluster_pb.js";
import { type ResponseHeader, ResponseHeaderSchema } from "../../gen/etcd/rpc_pb.js";
import type { MemberId } from "../../raft/types.js";
import type { KnownMember } from "../identity.js";
import type { CoreHost } from "../host.js";

/** The API that is served, in part, is that of this version of etcd. */
const apiVersion = "3.4.0";

/** gRPC's code for what is not there. */
const unimplemented = 12;

export interface ClusterFacts {
  readonly cluster: bigint;
  readonly id: MemberId;
  readonly members: readonly KnownMember[];
  clientUrlsOf(member: MemberId): readonly string[];
  /** Bytes of the data directory. */
  diskBytes(): number;
}

type Handlers = Record<string, handleUnaryCall<unknown, unknown>>;

/** Who is there, and how this server is. */
export function clusterHandlers(host: CoreHost, facts: ClusterFacts): Handlers {
  const header = (): ResponseHeader => {
    const { revision, term } = host.status();
    return create(ResponseHeaderSchema, {
      clusterId: facts.cluster,
      memberId: facts.id,
      revision: BigInt(revision),
      raftTerm: BigInt(term),
    });
  };
  return {
    MemberList: (_call, callback) => {
      const { learners } = host.status().membership;
      const members = facts.members.map(({ id, name, peerUrls }) => ({
        ID: id,
        name,
        peerURLs: [...peerUrls],
        clientURLs: [...facts.clientUrlsOf(id)],
        isLearner: learners.includes(id),
      }));
      callback(null, create(MemberListResponseSchema, { header: header(), members }));
    },
    Status: (_call, callback) => {
      callback(null, statusResponse(host, facts.id, header(), facts.diskBytes()));
    },
    Alarm: (call, callback) => {
      const { action } = call.request as AlarmRequest;
      // A server that is out of disk or finds its log damaged stops: there is no alarm to be raised or put out.
      if (action === Action.GET) callback(null, create(AlarmResponseSchema, { header: header() }));
      else callback({ code: unimplemented, details: "leasehold: there are no alarms" });
    },
  };
}

function statusResponse(host: CoreHost, id: MemberId, header: ResponseHeader, bytes: number): unknown {
  const { applied, leader, lastIndex, membership, term } = host.status();
  return create(StatusResponseSchema, {
    header,
    version: apiVersion,
    dbSize: BigInt(bytes),
    dbSizeInUse: BigInt(bytes),
    leader,
    raftIndex: BigInt(lastIndex),
    raftTerm: BigInt(term),
    raftAppliedIndex: BigInt(applied),
    errors: leader === 0n ? ["etcdserver: no leader"] : [],
    isLearner: membership.learners.includes(id),
  });
}
