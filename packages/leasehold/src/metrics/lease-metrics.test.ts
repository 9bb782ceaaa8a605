import { expect, test } from "vitest";
import { MemoryCluster } from "../testing/memory-cluster.js";
import { observeLeases } from "./lease-metrics.js";
import { Registry } from "./registry.js";
import { textOf } from "./text.js";

function observed() {
  const cluster = new MemoryCluster();
  const leases = cluster.open("a");
  const registry = new Registry(cluster.world.clock);
  const stop = observeLeases(leases, registry, cluster.world.clock);
  const lines = (name: string) =>
    textOf(registry, "prometheus")
      .split("\n")
      .filter((line) => line.startsWith(name));
  return { cluster, leases, registry, stop, lines };
}

test("calls are counted by how they end, with the time that they took", async () => {
  const { cluster, leases, lines } = observed();
  const other = cluster.open("b");
  const held = await other.acquire("x");
  expect(await leases.tryAcquire("x")).toBeUndefined();
  await expect(leases.acquire("x", { wait: 0 })).rejects.toMatchObject({ code: "LEASE_HELD" });
  const late = leases.acquire("x", { wait: "2s" });
  const abort = new AbortController();
  const aborted = leases.acquire("x", { signal: abort.signal });
  expect(lines("leasehold_waiters ")).toEqual(["leasehold_waiters 2"]);
  abort.abort();
  await expect(aborted).rejects.toThrow("aborted");
  const ended = Promise.allSettled([late]);
  await cluster.advance("3s");
  expect(await ended).toMatchObject([{ reason: { code: "TIMEOUT" } }]);
  await held.release();
  await leases.using("x", () => undefined);
  await leases.lead("y", async () => undefined);
  expect(lines("leasehold_waiters ")).toEqual(["leasehold_waiters 0"]);
  expect(lines("leasehold_acquisitions_total")).toEqual([
    'leasehold_acquisitions_total{outcome="held"} 2',
    'leasehold_acquisitions_total{outcome="aborted"} 1',
    'leasehold_acquisitions_total{outcome="timeout"} 1',
    'leasehold_acquisitions_total{outcome="acquired"} 2',
  ]);
  expect(lines('leasehold_acquisition_duration_seconds_sum{outcome="timeout"}')[0]).toMatch(/ 2(\.0\d*)?$/);
});

test("the share of a lease that was left at its renewal is shown, and what is lost, by why", async () => {
  const { cluster, leases, lines } = observed();
  const lease = await leases.acquire("x", { ttl: "3s" });
  expect(lines("leasehold_leases_held ")).toEqual(["leasehold_leases_held 1"]);
  await cluster.advance("1500ms");
  expect(lines("leasehold_renewals_total")).toEqual(["leasehold_renewals_total 1"]);
  // The lease is renewed after a third of its ttl.
  const sum = Number(lines("leasehold_renewal_slack_ratio_sum")[0]!.split(" ")[1]);
  expect(sum).toBeGreaterThan(0.6);
  expect(sum).toBeLessThan(0.67);
  cluster.cutOff("a");
  await cluster.advance("10s");
  expect(lease.remaining()).toBe(0);
  expect(lines("leasehold_renewals_late_total")).toEqual(["leasehold_renewals_late_total 1"]);
  expect(lines('leasehold_leases_lost_total{reason="expired"}')).toEqual([
    'leasehold_leases_lost_total{reason="expired"} 1',
  ]);
  expect(lines("leasehold_leases_held ")).toEqual(["leasehold_leases_held 0"]);
  expect(lines("leasehold_hold_duration_seconds_count")).toEqual(["leasehold_hold_duration_seconds_count 1"]);
});

test("nothing is counted any more when it was stopped, and no resource makes a series of its own", async () => {
  const { leases, registry, stop, lines } = observed();
  for (let number = 0; number < 1_000; number += 1) await leases.using(`r/${number}`, () => undefined);
  expect(Math.max(...[...registry.read().values()].map((series) => series.length))).toBeLessThan(3);
  expect(textOf(registry, "prometheus").split("\n").length).toBeLessThan(100);
  const lease = await leases.acquire("kept");
  stop();
  expect(lines("leasehold_leases_held ")).toEqual(["leasehold_leases_held 0"]);
  await lease.release();
  await leases.using("x", () => undefined);
  expect(lines("leasehold_acquisitions_total")).toEqual([
    'leasehold_acquisitions_total{outcome="acquired"} 1001',
  ]);
  expect(lines("leasehold_leases_held ")).toEqual(["leasehold_leases_held 0"]);
});
