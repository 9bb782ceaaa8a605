import { afterEach, beforeEach, expect, test } from "vitest";
import { open } from "leasehold";
import type { Leases } from "leasehold";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/** Several clusters, clients and members in one process. */

const clusters: LocalCluster[] = [];
const opened: Leases[] = [];

beforeEach(async () => {
  clusters.push(...(await Promise.all(["first", "second"].map((cluster) => startLocalCluster({ cluster })))));
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((leases) => leases.close()));
  await Promise.all(clusters.splice(0).map((cluster) => cluster.close()));
});

async function client(cluster: LocalCluster, name?: string): Promise<Leases> {
  const leases = await open(...cluster.urls, name === undefined ? {} : { name });
  opened.push(leases);
  return leases;
}

test("two clusters in one process are independent", async () => {
  const [first, second] = await Promise.all(clusters.map((cluster) => client(cluster)));
  const [one, two] = await Promise.all([first!.acquire("same name"), second!.acquire("same name")]);
  expect(one.remaining()).toBeGreaterThan(0);
  expect(two.remaining()).toBeGreaterThan(0);
  const wrong = open(...clusters[0]!.urls, { cluster: "second", timeout: 500 });
  await expect(wrong).rejects.toMatchObject({ code: "CLUSTER_MISMATCH" });
});

test("two clients in one process are two owners, even with the same name, and exclude each other", async () => {
  const [left, right] = await Promise.all([client(clusters[0]!, "same"), client(clusters[0]!, "same")]);
  expect(left.self).not.toBe(right.self);
  expect(left.self.split(".")[0]).toBe(right.self.split(".")[0]);
  const lease = await left.acquire("one");
  expect(await right.tryAcquire("one")).toBeUndefined();
  const waiting = right.acquire("one", { wait: "2s" });
  await lease.release();
  expect((await waiting).token).toBeGreaterThan(lease.token);
});

test("a member's own leases and a client's in the same process exclude each other", async () => {
  const [cluster] = clusters;
  const leases = await client(cluster!);
  const [a, b] = cluster!.members;
  const lease = await a!.leases.acquire("one");
  expect(await b!.leases.tryAcquire("one")).toBeUndefined();
  expect(await leases.tryAcquire("one")).toBeUndefined();
  await lease.release();
});
