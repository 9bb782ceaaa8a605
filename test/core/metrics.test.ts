import { execFileSync, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { report } from "../stores/support.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";

/**
 * The metrics that etcd's alerts and public dashboards use (its mixin, the rules of 3.4, dashboard 3070), by
 * type and labels.
 */
const asked = {
  etcd_server_has_leader: ["gauge"],
  etcd_server_leader_changes_seen_total: ["counter"],
  etcd_server_proposals_failed_total: ["counter"],
  etcd_server_proposals_pending: ["gauge"],
  etcd_server_proposals_committed_total: ["gauge"],
  etcd_server_proposals_applied_total: ["gauge"],
  etcd_server_quota_backend_bytes: ["gauge"],
  etcd_server_slow_apply_total: ["counter"],
  etcd_server_read_indexes_failed_total: ["counter"],
  etcd_mvcc_db_total_size_in_bytes: ["gauge"],
  etcd_mvcc_db_total_size_in_use_in_bytes: ["gauge"],
  etcd_debugging_mvcc_db_total_size_in_bytes: ["gauge"],
  etcd_disk_wal_fsync_duration_seconds: ["histogram"],
  etcd_disk_backend_commit_duration_seconds: ["histogram"],
  etcd_debugging_snap_save_total_duration_seconds: ["histogram"],
  etcd_server_heartbeat_send_failures_total: ["counter"],
  etcd_server_health_success: ["counter"],
  etcd_server_health_failures: ["counter"],
  etcd_network_peer_round_trip_time_seconds: ["histogram", "To"],
  etcd_network_peer_sent_failures_total: ["counter", "To"],
  etcd_network_peer_sent_bytes_total: ["counter", "To"],
  etcd_network_peer_received_bytes_total: ["counter", "From"],
  etcd_network_client_grpc_received_bytes_total: ["counter"],
  etcd_network_client_grpc_sent_bytes_total: ["counter"],
  grpc_server_started_total: ["counter", "grpc_method", "grpc_service", "grpc_type"],
  grpc_server_handled_total: ["counter", "grpc_code", "grpc_method", "grpc_service", "grpc_type"],
  grpc_server_handling_seconds: ["histogram", "grpc_method", "grpc_service", "grpc_type"],
  process_resident_memory_bytes: ["gauge"],
  process_virtual_memory_bytes: ["gauge"],
  process_cpu_seconds_total: ["counter"],
  process_start_time_seconds: ["gauge"],
  process_open_fds: ["gauge"],
  process_max_fds: ["gauge"],
} as const;

async function metricsOf({ endpoint }: CoreProcess): Promise<string> {
  return await (await fetch(`http://${endpoint}/metrics`)).text();
}

interface Shown {
  readonly type: string;
  readonly labels: string[];
  readonly buckets: string[];
}

function shownIn(text: string, name: string): Shown | undefined {
  const [, type] = new RegExp(`^# TYPE ${name} (\\w+)$`, "m").exec(text) ?? [];
  const series = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:{([^}]*)})? `, "gm"))];
  if (type === undefined || series.length === 0 || !text.includes(`# HELP ${name} `)) return undefined;
  const labels = series.flatMap(([, inner = ""]) =>
    [...inner.matchAll(/(\w+)="/g)].map(([, label]) => label!),
  );
  const buckets = [...text.matchAll(new RegExp(`^${name}_bucket{.*le="([^"]+)"`, "gm"))].map(([, le]) => le!);
  return {
    type,
    labels: [...new Set(labels)].filter((label) => label !== "le").sort(),
    buckets: [...new Set(buckets)],
  };
}

/** The sum over all series of that name. */
function sumOf(text: string, name: string): number {
  const series = [...text.matchAll(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, "gm"))];
  return series.reduce((sum, [, value]) => sum + Number(value), 0);
}

test("each metric that etcd's alerts and dashboards ask for is there, of its type, with its labels, and moves", async () => {
  const flags = ["--metrics", "extensive"];
  await using theirs = await CoreCluster.start(3, { program: "etcd", flags });
  await using ours = await CoreCluster.start(3, { flags: ["--quota-backend-bytes", "100000000"] });
  for (const { client } of [...ours.servers, ...theirs.servers]) await client.put("k", "v".repeat(50_000));
  const text = await metricsOf(ours.servers[0]!);
  const etcds = await metricsOf(theirs.servers[0]!);
  for (const [name, [type, ...labels]] of Object.entries(asked)) {
    const shown = shownIn(text, name);
    expect([name, shown?.type, shown?.labels]).toEqual([name, type, labels]);
    const other = shownIn(etcds, name);
    if (other === undefined) continue;
    // etcd has no peers of a kind here that ours lack.
    expect({ name, ...other }).toEqual({ name, ...shown });
  }
  // etcd has this one only after it has probed its peers, half a minute after its start.
  expect(shownIn(text, "etcd_network_peer_round_trip_time_seconds")?.buckets.at(-2)).toBe("3.2768");
  expect(sumOf(text, "etcd_server_quota_backend_bytes")).toBe(100_000_000);
  const [one] = ours.servers as [CoreProcess];
  const counters = [
    "etcd_network_peer_sent_bytes_total",
    "etcd_network_peer_received_bytes_total",
    "etcd_network_client_grpc_received_bytes_total",
    "etcd_network_client_grpc_sent_bytes_total",
    "etcd_network_peer_round_trip_time_seconds_count",
    "etcd_mvcc_db_total_size_in_bytes",
    "process_cpu_seconds_total",
  ];
  for (const { client } of ours.servers)
    for (let at = 0; at < 5; at += 1) await client.put(`k${at}`, "v".repeat(50_000));
  await one.client.get("k0");
  for (const name of counters)
    await expect
      .poll(async () => sumOf(await metricsOf(one), name), { timeout: 30_000 })
      .toBeGreaterThan(sumOf(text, name));
  expect(sumOf(await metricsOf(one), "etcd_network_client_grpc_received_bytes_total")).toBeGreaterThan(
    50_000,
  );
  expect(sumOf(text, "process_open_fds")).toBeGreaterThan(10);
});

test("a server that loses its leader says so, counts what failed, and a normal start has no warnings", async () => {
  await using cluster = await CoreCluster.start(3);
  const leader = await cluster.leader();
  for (const server of cluster.servers) {
    await server.client.put("a", "1");
    expect(server.output).not.toContain("warning");
  }
  const [follower, other] = cluster.servers.filter((server) => server !== leader) as [
    CoreProcess,
    CoreProcess,
  ];
  await leader.kill();
  await other.kill();
  await expect
    .poll(() => follower.output, { timeout: 30_000 })
    .toContain(`lost its leader, ${leader.name}, in term`);
  const failures = [follower.client.put("b", "1", 20_000), follower.client.get("b", 20_000)];
  for (const failure of failures) await expect(failure).rejects.toThrow(/etcdserver: /);
  const text = await metricsOf(follower);
  expect(sumOf(text, "etcd_server_has_leader")).toBe(0);
  expect(sumOf(text, "etcd_server_proposals_failed_total")).toBe(1);
  expect(sumOf(text, "etcd_server_read_indexes_failed_total")).toBeGreaterThanOrEqual(1);
  expect(sumOf(text, "etcd_network_peer_sent_failures_total")).toBeGreaterThan(0);
  // Absent members are named at the end.
  await expect.poll(() => follower.output, { timeout: 30_000 }).toContain(`no connection to ${leader.name}`);
});

/** Debian's promtool, which is installed if possible. */
function hasPromtool(): boolean {
  const isThere = () => spawnSync("promtool", ["--version"]).status === 0;
  if (isThere()) return true;
  try {
    for (const words of [["update"], ["install", "-y", "--no-install-recommends", "prometheus"]])
      execFileSync("apt-get", words, {
        stdio: "pipe",
        env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
      });
  } catch {
    return false;
  }
  return isThere();
}

test("Prometheus' promtool reads the text, and finds fault with nothing but names that etcd gave", async (context) => {
  if (!hasPromtool()) {
    report("the metrics were NOT checked by promtool: Debian's package prometheus cannot be installed here");
    context.skip();
  }
  await using cluster = await CoreCluster.start(3);
  const input = await metricsOf(cluster.servers[0]!);
  const { status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input, encoding: "utf8" });
  // 1: the file cannot be read; 3: it can, but a name does not follow Prometheus' advice.
  expect([0, 3]).toContain(status);
  const faults = `${stdout}${stderr}`
    .trim()
    .split("\n")
    .filter((line) => line !== "");
  const names = [
    /^etcd_\w+_total non-counter metrics should not have "_total" suffix$/,
    /^etcd_server_health_(failures|success) counter metrics should have "_total" suffix$/,
  ];
  expect(faults.filter((line) => !names.some((name) => name.test(line)))).toEqual([]);
  report(`promtool: exit code ${status}, ${faults.length} remarks, all about etcd's names`);
});
