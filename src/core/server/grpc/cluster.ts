import { create } from "@bufbuild/protobuf";
import type { handleUnaryCall } from "@grpc/grpc-js";
import { MemberListResponseSchema, StatusResponseSchema } from "../../gen/etcd/cluster_pb.js";
import { type ResponseHeader, ResponseHeaderSchema } from "../../gen/etcd/rpc_pb.js";
import type { MemberId } from "../../raft/types.js";
import type { KnownMember } from "../common/identity.js";
import type { CoreHost } from "../../host/host.js";

/** The API that is served, in part, is that of this version of etcd. */
const apiVersion = "3.4.0";

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
  };
}

function statusResponse(host: CoreHost, id: MemberId, header: ResponseHeader, bytes: number): unknown {
  const { applied, bytes: stateBytes, leader, lastIndex, membership, spaceAlarms, term } = host.status();
  const alarms = spaceAlarms.map((member) => `memberID:${member} alarm:NOSPACE `);
  return create(StatusResponseSchema, {
    header,
    version: apiVersion,
    dbSize: BigInt(bytes),
    dbSizeInUse: BigInt(stateBytes),
    leader,
    raftIndex: BigInt(lastIndex),
    raftTerm: BigInt(term),
    raftAppliedIndex: BigInt(applied),
    errors: leader === 0n ? ["etcdserver: no leader", ...alarms] : alarms,
    isLearner: membership.learners.includes(id),
  });
}
