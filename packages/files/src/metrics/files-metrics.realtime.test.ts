import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMetrics } from "leasehold/metrics";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { openBlockDirectory } from "../disk/directory-store.js";
import { serveWebdav } from "../webdav/server.js";
import { filesCatalogue } from "./catalogue.js";
import { FilesMetrics } from "./files-metrics.js";

function observed() {
  const all = createMetrics();
  const metrics = new FilesMetrics(all.define(filesCatalogue));
  const lines = (...parts: string[]) =>
    all
      .text()
      .split("\n")
      .filter((line) => parts.every((part) => line.includes(part)) && !line.startsWith("#"));
  return { metrics, lines };
}

test("requests count by method and outcome, with their bytes", async () => {
  const { metrics, lines } = observed();
  const files = new MemoryFiles();
  const stop = metrics.watch(files, tmpdir());
  const leases = new MemoryCluster().open("node");
  const server = await serveWebdav(files, leases, { observer: metrics });
  await fetch(`${server.url}/a`, { method: "PUT", body: "x".repeat(10_000) });
  await (await fetch(`${server.url}/a`)).arrayBuffer();
  await (await fetch(`${server.url}/missing`)).arrayBuffer();
  await (await fetch(`${server.url}/a`, { method: "FROBNICATE" })).arrayBuffer();
  await expect
    .poll(() => lines("request_duration_seconds_count").sort())
    .toEqual([
      'leasehold_files_request_duration_seconds_count{api="webdav",method="GET",outcome="404"} 1',
      'leasehold_files_request_duration_seconds_count{api="webdav",method="GET",outcome="ok"} 1',
      'leasehold_files_request_duration_seconds_count{api="webdav",method="PUT",outcome="ok"} 1',
    ]);
  expect(lines("requests_open")).toEqual(['leasehold_files_requests_open{api="webdav"} 0']);
  const bytes = (name: string) => Number(lines(name)[0]!.split(" ").at(-1));
  expect(bytes("leasehold_files_received_bytes_total")).toBeGreaterThan(10_000);
  expect(bytes("leasehold_files_sent_bytes_total")).toBeGreaterThan(10_000);
  expect(lines("leasehold_files_state{", "} 1")).toEqual(['leasehold_files_state{state="serving"} 1']);
  expect(lines("leasehold_files_majority")).toEqual(["leasehold_files_majority 1"]);
  stop();
  await server.close();
  await leases.close();
});

test("each sync of the disk is observed", async () => {
  const { metrics, lines } = observed();
  const folder = await mkdtemp(join(tmpdir(), "leasehold-sync-"));
  const store = await openBlockDirectory(folder, { synced: (tookMs) => metrics.synced(tookMs) });
  const count = () => Number(lines("disk_sync_duration_seconds_count")[0]?.split(" ").at(-1) ?? 0);
  const before = count();
  await store.writeNode("node");
  expect(count()).toBeGreaterThan(before);
  await store.close();
  await rm(folder, { recursive: true });
});
