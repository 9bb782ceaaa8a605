import { create } from "@bufbuild/protobuf";
import { type StatusResponse, StatusResponseSchema } from "../../gen/etcd/cluster_pb.js";
import type { CoreHost } from "../../host/host.js";
import { type ClusterFacts, headerNow, type UnaryHandlers } from "./header.js";

/** The API that is served, in part, is that of this version of etcd. */
const apiVersion = "3.4.0";

/** How this server is. */
export function maintenanceHandlers(host: CoreHost, facts: ClusterFacts): UnaryHandlers {
  return { Status: (_call, callback) => callback(null, statusResponse(host, facts)) };
}

function statusResponse(host: CoreHost, facts: ClusterFacts): StatusResponse {
  const { applied, bytes, leader, lastIndex, membership, spaceAlarms, term } = host.status();
  const alarms = spaceAlarms.map((member) => `memberID:${member} alarm:NOSPACE `);
  return create(StatusResponseSchema, {
    header: headerNow(host, facts),
    version: apiVersion,
    dbSize: BigInt(facts.diskBytes()),
    dbSizeInUse: BigInt(bytes),
    leader,
    raftIndex: BigInt(lastIndex),
    raftTerm: BigInt(term),
    raftAppliedIndex: BigInt(applied),
    errors: leader === 0n ? ["etcdserver: no leader", ...alarms] : alarms,
    isLearner: membership.learners.includes(facts.id),
  });
}
