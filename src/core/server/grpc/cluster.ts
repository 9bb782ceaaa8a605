import { create } from "@bufbuild/protobuf";
import { MemberListResponseSchema } from "../../gen/etcd/cluster_pb.js";
import type { CoreHost } from "../../host/host.js";
import { type ClusterFacts, headerNow, type UnaryHandlers } from "./header.js";

/** Who is there. */
export function clusterHandlers(host: CoreHost, facts: ClusterFacts): UnaryHandlers {
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
      callback(null, create(MemberListResponseSchema, { header: headerNow(host, facts), members }));
    },
  };
}
