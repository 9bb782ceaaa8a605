import type { DescMethod } from "@bufbuild/protobuf";
import { Auth } from "leasehold/etcd/gen/etcd/auth_pb.js";
import { Cluster, Maintenance } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { KV, Lease, Watch } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { Election } from "leasehold/etcd/gen/etcd/v3election_pb.js";
import { NamedLeases } from "leasehold/etcd/gen/leasehold/own_pb.js";
import { Lock } from "leasehold/etcd/gen/etcd/v3lock_pb.js";

/** Paths of etcd's gateway; all use POST. */
const etcds: Readonly<Record<string, DescMethod>> = {
  "kv/range": KV.method.range,
  "kv/put": KV.method.put,
  "kv/deleterange": KV.method.deleteRange,
  "kv/txn": KV.method.txn,
  "kv/compaction": KV.method.compact,
  watch: Watch.method.watch,
  "lease/grant": Lease.method.leaseGrant,
  "lease/revoke": Lease.method.leaseRevoke,
  "kv/lease/revoke": Lease.method.leaseRevoke,
  "lease/keepalive": Lease.method.leaseKeepAlive,
  "lease/timetolive": Lease.method.leaseTimeToLive,
  "kv/lease/timetolive": Lease.method.leaseTimeToLive,
  "lease/leases": Lease.method.leaseLeases,
  "kv/lease/leases": Lease.method.leaseLeases,
  "cluster/member/add": Cluster.method.memberAdd,
  "cluster/member/remove": Cluster.method.memberRemove,
  "cluster/member/update": Cluster.method.memberUpdate,
  "cluster/member/list": Cluster.method.memberList,
  "cluster/member/promote": Cluster.method.memberPromote,
  "maintenance/alarm": Maintenance.method.alarm,
  "maintenance/status": Maintenance.method.status,
  "maintenance/defragment": Maintenance.method.defragment,
  "maintenance/hash": Maintenance.method.hashKV,
  "maintenance/snapshot": Maintenance.method.snapshot,
  "maintenance/transfer-leadership": Maintenance.method.moveLeader,
  "maintenance/downgrade": Maintenance.method.downgrade,
  "auth/enable": Auth.method.authEnable,
  "auth/disable": Auth.method.authDisable,
  "auth/status": Auth.method.authStatus,
  "auth/authenticate": Auth.method.authenticate,
  "auth/user/add": Auth.method.userAdd,
  "auth/user/get": Auth.method.userGet,
  "auth/user/list": Auth.method.userList,
  "auth/user/delete": Auth.method.userDelete,
  "auth/user/changepw": Auth.method.userChangePassword,
  "auth/user/grant": Auth.method.userGrantRole,
  "auth/user/revoke": Auth.method.userRevokeRole,
  "auth/role/add": Auth.method.roleAdd,
  "auth/role/get": Auth.method.roleGet,
  "auth/role/list": Auth.method.roleList,
  "auth/role/delete": Auth.method.roleDelete,
  "auth/role/grant": Auth.method.roleGrantPermission,
  "auth/role/revoke": Auth.method.roleRevokePermission,
  "lock/lock": Lock.method.lock,
  "lock/unlock": Lock.method.unlock,
  "election/campaign": Election.method.campaign,
  "election/proclaim": Election.method.proclaim,
  "election/leader": Election.method.leader,
  "election/observe": Election.method.observe,
  "election/resign": Election.method.resign,
};

/** Methods in addition to etcd's API. */
const own: Readonly<Record<string, DescMethod>> = {
  "lease/register": NamedLeases.method.register,
  "lease/find": NamedLeases.method.find,
};

/** Methods by path. As in etcd 3.4, each also has a path under the older name of the API. */
export const routes: ReadonlyMap<string, DescMethod> = new Map([
  ...["/v3/", "/v3beta/"].flatMap((prefix) => below(prefix, etcds)),
  ...below("/leasehold/v1/", own),
]);

function below(prefix: string, methods: Readonly<Record<string, DescMethod>>): [string, DescMethod][] {
  return Object.entries(methods).map(([name, method]) => [`${prefix}${name}`, method]);
}
