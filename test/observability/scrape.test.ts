import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";

/** A real Prometheus scrapes three members, one of which is killed, a holder and a gateway. */

const folder = mkdtempSync(join(tmpdir(), "leasehold-prometheus-"));
const rules = fileURLToPath(new URL("../../deploy/prometheus/leasehold.rules.yml", import.meta.url));
const children: ChildProcess[] = [];

function start(command: string, ...words: string[]): ChildProcess {
  const child = spawn(command, words, { cwd: folder, stdio: "ignore" });
  children.push(child);
  return child;
}
const leasehold = (...words: string[]): ChildProcess =>
  start(process.execPath, join(dist, "cli/main.js"), ...words);

afterAll(async () => {
  for (const child of children) {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  rmSync(folder, { recursive: true });
});

interface Answer {
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

test("members and holders are scraped, and the numbers show what happens", async ({ skip }) => {
  skip(spawnSync("prometheus", ["--version"]).status !== 0, "Prometheus is not installed");
  const ports = await freePorts(10);
  const at = (index: number): string => `127.0.0.1:${ports[index]}`;
  const ids = ["a", "b", "c"];
  const members = ids.flatMap((id, index) => ["--member", `${id}=${at(index)}`]);
  const peers = ids.map((id, index) =>
    leasehold(
      "peer",
      "--id",
      id,
      ...members,
      "--ttl-max",
      "3s",
      "--max-clock-skew",
      "100ms",
      "--metrics-address",
      at(3 + index),
    ),
  );
  const endpoints = ids.map((_, index) => `flease://${at(index)}`).join(",");
  leasehold("hold", "jobs/nightly", "--endpoints", endpoints, "--timeout", "30s", "--metrics-address", at(6));
  leasehold("gateway", "--endpoints", endpoints, "--address", at(8), "--metrics-address", at(9));
  const targets = [3, 4, 5, 6, 9].map((index) => JSON.stringify(at(index))).join(", ");
  writeFileSync(
    join(folder, "prometheus.yml"),
    [
      "global: { scrape_interval: 1s, evaluation_interval: 1s }",
      `rule_files: [${JSON.stringify(rules)}]`,
      `scrape_configs: [{ job_name: leasehold, static_configs: [{ targets: [${targets}] }] }]`,
      "",
    ].join("\n"),
  );
  start(
    "prometheus",
    "--config.file=prometheus.yml",
    `--web.listen-address=${at(7)}`,
    `--storage.tsdb.path=${folder}/data`,
  );
  const value = async (query: string): Promise<number | undefined> => {
    const url = `http://${at(7)}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok !== true) return undefined;
    const { data } = (await answer.json()) as Answer;
    return data.result.length === 0 ? undefined : Number(data.result[0]!.value[1]);
  };
  const shows = async (query: string, wanted: number): Promise<void> => {
    await expect.poll(() => value(query), { timeout: 60_000, interval: 500, message: query }).toBe(wanted);
  };
  await shows("sum(up)", 5);
  await shows('sum(leasehold_member_ready{state="ready"})', 3);
  await shows("sum(leasehold_leases_held)", 1);
  await shows('sum(leasehold_acquisitions_total{outcome="acquired"})', 1);
  await shows("sum(leasehold_renewal_slack_ratio_count) > bool 2", 1);
  // Undisturbed renewals leave at least two thirds of the ttl.
  await shows(
    "(sum(leasehold_renewal_slack_ratio_sum) / sum(leasehold_renewal_slack_ratio_count)) > bool 0.5",
    1,
  );
  await shows("sum(leasehold_member_peer_connected)", 6);
  await shows("max(abs(leasehold_member_peer_skew_seconds)) < bool 0.1", 1);
  await shows("count(leasehold_event_loop_delay_seconds_count) > bool 4", 1);
  const ready = async (): Promise<unknown> =>
    (await fetch(`http://${at(9)}/readyz`).catch(() => undefined))?.status;
  await expect.poll(ready, { timeout: 60_000 }).toBe(200);
  for (const resource of ["reports/nightly", "jobs/nightly"])
    await fetch(`http://${at(8)}/v1/leases`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ resource, ttl: "1m", wait: 0 }),
    });
  const calls = "leasehold_gateway_request_duration_seconds_count";
  await shows(`sum(${calls}{route="POST /v1/leases",outcome="ok"})`, 1);
  await shows(`sum(${calls}{route="POST /v1/leases",outcome="refused"})`, 1);
  await shows('sum(leasehold_gateway_refusals_total{reason="lease_held"})', 1);
  await shows("sum(leasehold_gateway_sessions)", 1);
  await shows("sum(leasehold_leases_held)", 2);
  peers[2]!.kill("SIGKILL");
  await shows("sum(up)", 4);
  await shows("sum(leasehold_member_peer_connected)", 2);
  await shows("sum(leasehold_leases_held)", 2);
  await shows("sum(leasehold_leases_lost_total)", 0);
}, 180_000);
