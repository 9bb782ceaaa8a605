import { create } from "@bufbuild/protobuf";
import { MemberListResponseSchema } from "../../gen/etcd/cluster_pb.js";
import type { CoreHost } from "../../host/host.js";
import { type ClusterFacts, headerNow, type UnaryHandlers } from "./header.js";

/** Who is there. */
export function clusterHandlers(host: CoreHost, facts: ClusterFacts): UnaryHandlers {
  return {
    MemberList: (_call, callback) => {
      const { learners } = host.status().membership;
      const members = facts.members.toSorted(byId).map(({ id, name, peerUrls }) => ({
        ID: id,
        name,
        peerURLs: [...peerUrls],
        clientURLs: [...facts.clientUrlsOf(id)],
        isLearner: learners.includes(id),
      }));
      // As at etcd: what is told does not come from the keys.
      const header = { ...headerNow(host, facts), revision: 0n };
      callback(null, create(MemberListResponseSchema, { header, members }));
    },
  };
}

function byId(one: { readonly id: bigint }, other: { readonly id: bigint }): number {
  return one.id < other.id ? -1 : 1;
}
