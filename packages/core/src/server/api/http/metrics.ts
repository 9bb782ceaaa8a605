import { readdirSync, readFileSync } from "node:fs";
import type { ReplicaStatus } from "../../../replica/api.js";
import type { ClusterFacts } from "../calls/header.js";
import { openFilesMax } from "../../accounts/connections-max.js";
import type { Connections } from "../../accounts/connections.js";
import type { Counters } from "../../metrics/counters.js";
import { apiVersion } from "../maintenance.js";

type Kind = "counter" | "gauge" | "histogram";
type Row = readonly [name: string, kind: Kind, help: string, value: number | readonly string[] | undefined];

export interface Measured {
  readonly status: ReplicaStatus;
  readonly facts: ClusterFacts;
  readonly counters: Counters;
  readonly connections: Pick<Connections, "max" | "open" | "refused">;
  /** Bytes over connections of gRPC clients. */
  readonly clients: { readonly received: number; readonly sent: number };
  readonly quotaBytes: number;
}

/** The metrics that etcd's alerts and dashboards use, under etcd's names, in Prometheus' text format. */
export function metricsText(measured: Measured): string {
  const rows = [
    ...serverRows(measured),
    ...storeRows(measured),
    ...diskRows(measured),
    ...networkRows(measured),
    ...callRows(measured),
    ...processRows(),
  ];
  const lines = rows.flatMap(([name, kind, help, value]) =>
    value === undefined
      ? []
      : [
          `# HELP ${name} ${help}`,
          `# TYPE ${name} ${kind}`,
          ...(typeof value === "number" ? [`${name} ${value}`] : value),
        ],
  );
  return `${lines.join("\n")}\n`;
}

function serverRows({ counters, facts, quotaBytes, status }: Measured): Row[] {
  const { applied, commit, leader, membership, requests, role } = status;
  const cluster = apiVersion.replace(/\.\d+$/, "");
  const id = facts.id.toString(16);
  return [
    ["etcd_server_has_leader", "gauge", "Whether this server knows a leader.", leader === 0n ? 0 : 1],
    ["etcd_server_is_leader", "gauge", "Whether this server leads.", role === "leader" ? 1 : 0],
    [
      "etcd_server_is_learner",
      "gauge",
      "Whether this server is a learner.",
      membership.learners.includes(facts.id) ? 1 : 0,
    ],
    [
      "etcd_server_leader_changes_seen_total",
      "counter",
      "Leaders that this server has come to know.",
      counters.leaderChanges,
    ],
    ["leasehold_core_raft_term", "gauge", "Raft's term.", status.term],
    ["etcd_server_proposals_committed_total", "gauge", "Index of the last committed entry.", commit],
    ["etcd_server_proposals_applied_total", "gauge", "Index of the last applied entry.", applied],
    ["etcd_server_proposals_pending", "gauge", "Requests that have no answer yet.", requests],
    [
      "etcd_server_proposals_failed_total",
      "counter",
      "Writes that ended without an answer of a leader.",
      status.proposalsFailed,
    ],
    [
      "etcd_server_read_indexes_failed_total",
      "counter",
      "Linearizable reads and refreshes that ended without an answer of a leader.",
      status.asksFailed,
    ],
    [
      "etcd_server_heartbeat_send_failures_total",
      "counter",
      "Heartbeats that could not be sent.",
      [...counters.peers.values()].reduce((sum, { heartbeatFailures }) => sum + heartbeatFailures, 0),
    ],
    ["etcd_server_health_success", "counter", "Answers that it is healthy.", counters.healthAsked.healthy],
    ["etcd_server_health_failures", "counter", "Answers that it is not.", counters.healthAsked.unhealthy],
    [
      "etcd_server_slow_apply_total",
      "counter",
      "Entries that took longer than 100 ms to apply.",
      status.slowApplies,
    ],
    [
      "etcd_server_quota_backend_bytes",
      "gauge",
      "Bytes that keys, values and history may take; see etcd_mvcc_db_total_size_in_bytes.",
      quotaBytes,
    ],
    ["etcd_server_id", "gauge", "This server's id, as a label.", [`etcd_server_id{server_id="${id}"} 1`]],
    [
      "etcd_server_version",
      "gauge",
      "The version of etcd whose API this is, as a label.",
      [`etcd_server_version{server_version="${apiVersion}"} 1`],
    ],
    [
      "etcd_cluster_version",
      "gauge",
      "The same of the cluster.",
      [`etcd_cluster_version{cluster_version="${cluster}"} 1`],
    ],
  ];
}

function storeRows({ status }: Measured): Row[] {
  const { bytes, compacted, deletions, keys, leases, puts, revision, watches, watchesBehind } = status;
  const size = "Bytes of keys, values and history, as they count against the quota.";
  const putHelp = "Puts since this server started.";
  const deletionHelp = "Deletions since this server started.";
  return [
    ["etcd_mvcc_db_total_size_in_bytes", "gauge", size, bytes],
    ["etcd_mvcc_db_total_size_in_use_in_bytes", "gauge", size, bytes],
    ["etcd_debugging_mvcc_db_total_size_in_bytes", "gauge", size, bytes],
    ["etcd_mvcc_put_total", "counter", putHelp, puts],
    ["etcd_debugging_mvcc_put_total", "counter", putHelp, puts],
    ["etcd_mvcc_delete_total", "counter", deletionHelp, deletions],
    ["etcd_debugging_mvcc_delete_total", "counter", deletionHelp, deletions],
    ["etcd_debugging_mvcc_current_revision", "gauge", "The current revision.", revision],
    ["etcd_debugging_mvcc_compact_revision", "gauge", "The revision of the last compaction.", compacted],
    ["etcd_debugging_mvcc_keys_total", "gauge", "Keys.", keys],
    ["etcd_debugging_mvcc_watcher_total", "gauge", "Watches.", watches],
    [
      "etcd_debugging_mvcc_slow_watcher_total",
      "gauge",
      "Watches that read from history, as they are new or slow.",
      watchesBehind,
    ],
    ["leasehold_core_leases", "gauge", "Leases.", leases],
  ];
}

function diskRows({ counters, facts }: Measured): Row[] {
  const [sync, commit, saved] = [
    "etcd_disk_wal_fsync_duration_seconds",
    "etcd_disk_backend_commit_duration_seconds",
    "etcd_debugging_snap_save_total_duration_seconds",
  ];
  return [
    [sync, "histogram", "Time that a write of the log took to be on disk.", counters.walSync.lines(sync)],
    [
      commit,
      "histogram",
      "The same: there is no database beside the log to commit to.",
      counters.walSync.lines(commit),
    ],
    [
      saved,
      "histogram",
      "Time that a snapshot of the state took to be on disk.",
      counters.snapshotSave.lines(saved),
    ],
    ["leasehold_core_disk_bytes", "gauge", "Bytes of the data directory.", facts.diskBytes()],
  ];
}

function networkRows({ clients, connections, counters }: Measured): Row[] {
  const peers = [...counters.peers].map(([id, counts]) => ({ id: id.toString(16), counts }));
  const roundTrip = "etcd_network_peer_round_trip_time_seconds";
  const [received, sent] = ["etcd_network_peer_received_bytes_total", "etcd_network_peer_sent_bytes_total"];
  const failures = "etcd_network_peer_sent_failures_total";
  const queued = "leasehold_core_peer_queued_bytes";
  return [
    [
      roundTrip,
      "histogram",
      "Time from a ping to its answer.",
      peers.flatMap(({ counts, id }) => counts.roundTrip.lines(roundTrip, `To="${id}"`)),
    ],
    [
      received,
      "counter",
      "Bytes from another server.",
      peers.map(({ counts, id }) => `${received}{From="${id}"} ${counts.traffic.bytes.received}`),
    ],
    [
      sent,
      "counter",
      "Bytes to another server.",
      peers.map(({ counts, id }) => `${sent}{To="${id}"} ${counts.traffic.bytes.sent}`),
    ],
    [
      failures,
      "counter",
      "Messages to another server that could not be sent.",
      peers.map(({ counts, id }) => `${failures}{To="${id}"} ${counts.failures}`),
    ],
    [
      queued,
      "gauge",
      "Bytes that wait for another server's sockets.",
      peers.map(({ counts, id }) => `${queued}{To="${id}"} ${counts.queuedBytes()}`),
    ],
    [
      "etcd_network_client_grpc_received_bytes_total",
      "counter",
      "Bytes from clients, over their connections of gRPC.",
      clients.received,
    ],
    [
      "etcd_network_client_grpc_sent_bytes_total",
      "counter",
      "Bytes to clients, over their connections of gRPC.",
      clients.sent,
    ],
    ["leasehold_core_client_connections", "gauge", "Connections of clients.", connections.open],
    [
      "leasehold_core_client_connections_max",
      "gauge",
      "Connections of clients that there is room for.",
      connections.max,
    ],
    [
      "leasehold_core_client_connections_refused_total",
      "counter",
      "Connections of clients that there was no room for.",
      connections.refused,
    ],
  ];
}

function callRows({ counters: { methods } }: Measured): Row[] {
  const took = "grpc_server_handling_seconds";
  return [
    [
      "grpc_server_started_total",
      "counter",
      "Calls that began.",
      methods.map(({ labels, started }) => `grpc_server_started_total{${labels}} ${started}`),
    ],
    [
      "grpc_server_handled_total",
      "counter",
      "Calls that ended, by their status.",
      methods.flatMap((method) => method.handledLines()),
    ],
    [
      took,
      "histogram",
      "Time from the beginning of a call to its end.",
      methods.flatMap((method) => (method.started > 0 ? method.took.lines(took, method.labels) : [])),
    ],
  ];
}

const filesMax = openFilesMax();

/** Rows in addition to those of every Leasehold process. */
function processRows(): Row[] {
  return [
    ["process_virtual_memory_bytes", "gauge", "Virtual memory.", virtualBytes()],
    ["process_open_fds", "gauge", "Open files.", openFiles()],
    ["process_max_fds", "gauge", "Files that may be open.", Number.isFinite(filesMax) ? filesMax : undefined],
  ];
}

/** Number of open files, on Linux only; without the folder being listed. */
function openFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return undefined;
  }
}

function virtualBytes(): number | undefined {
  try {
    const [, kilobytes] = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}
