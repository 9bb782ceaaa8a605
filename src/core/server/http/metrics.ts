import type { CoreHost } from "../../host/host.js";
import type { ClusterFacts } from "../grpc/header.js";
import type { Connections } from "../front/connections.js";
import type { Counters } from "../common/counters.js";
import { apiVersion } from "../grpc/maintenance.js";

type Kind = "counter" | "gauge" | "histogram";

/** What dashboards for etcd ask, under etcd's names, in Prometheus' text. */
export function metricsText(
  host: Pick<CoreHost, "status">,
  facts: ClusterFacts,
  counters: Counters,
  connections: Pick<Connections, "max" | "open" | "refused">,
): string {
  const status = host.status();
  const {
    applied,
    bytes,
    commit,
    deletions,
    keys,
    puts,
    leader,
    leases,
    requests,
    role,
    watches,
    watchesBehind,
  } = status;
  const size = facts.diskBytes();
  const cpu = process.cpuUsage();
  const all: [name: string, kind: Kind, value: number | string[]][] = [
    ["etcd_server_has_leader", "gauge", leader === 0n ? 0 : 1],
    ["etcd_server_is_leader", "gauge", role === "leader" ? 1 : 0],
    ["etcd_server_is_learner", "gauge", status.membership.learners.includes(facts.id) ? 1 : 0],
    ["etcd_server_leader_changes_seen_total", "counter", counters.leaderChanges],
    ["etcd_server_proposals_committed_total", "gauge", commit],
    ["etcd_server_proposals_applied_total", "gauge", applied],
    ["etcd_server_proposals_pending", "gauge", requests],
    ["etcd_server_id", "gauge", [`etcd_server_id{server_id="${facts.id.toString(16)}"} 1`]],
    ["etcd_server_version", "gauge", [`etcd_server_version{server_version="${apiVersion}"} 1`]],
    [
      "etcd_cluster_version",
      "gauge",
      [`etcd_cluster_version{cluster_version="${apiVersion.replace(/\.\d+$/, "")}"} 1`],
    ],
    ["etcd_mvcc_db_total_size_in_bytes", "gauge", size],
    ["etcd_mvcc_db_total_size_in_use_in_bytes", "gauge", bytes],
    ["etcd_debugging_mvcc_db_total_size_in_bytes", "gauge", size],
    ["etcd_mvcc_put_total", "counter", puts],
    ["etcd_debugging_mvcc_put_total", "counter", puts],
    ["etcd_mvcc_delete_total", "counter", deletions],
    ["etcd_debugging_mvcc_delete_total", "counter", deletions],
    ["etcd_debugging_mvcc_current_revision", "gauge", status.revision],
    ["etcd_debugging_mvcc_compact_revision", "gauge", status.compacted],
    ["etcd_debugging_mvcc_keys_total", "gauge", keys],
    ["etcd_debugging_mvcc_watcher_total", "gauge", watches],
    ["etcd_debugging_mvcc_slow_watcher_total", "gauge", watchesBehind],
    ["leasehold_core_leases", "gauge", leases],
    ["leasehold_core_client_connections", "gauge", connections.open],
    ["leasehold_core_client_connections_max", "gauge", connections.max],
    ["leasehold_core_client_connections_refused_total", "counter", connections.refused],
    [
      "etcd_disk_wal_fsync_duration_seconds",
      "histogram",
      counters.walSync.lines("etcd_disk_wal_fsync_duration_seconds"),
    ],
    [
      "grpc_server_started_total",
      "counter",
      counters.methods.map(({ labels, started }) => `grpc_server_started_total{${labels}} ${started}`),
    ],
    ["grpc_server_handled_total", "counter", counters.methods.flatMap((method) => method.handledLines())],
    ["process_cpu_seconds_total", "counter", (cpu.user + cpu.system) / 1e6],
    ["process_resident_memory_bytes", "gauge", process.memoryUsage.rss()],
    ["process_start_time_seconds", "gauge", performance.timeOrigin / 1e3],
  ];
  const lines = all.flatMap(([name, kind, value]) => [
    `# TYPE ${name} ${kind}`,
    ...(typeof value === "number" ? [`${name} ${value}`] : value),
  ]);
  return `${lines.join("\n")}\n`;
}
