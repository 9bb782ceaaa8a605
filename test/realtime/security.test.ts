import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterStatus, open } from "leasehold";
import type { Leases, OpenOptions } from "leasehold";
import { changeMembers } from "../../packages/leasehold/src/flease/tcp/change-members.js";
import type { FleaseOptions } from "../../packages/leasehold/src/flease/tcp/types.js";
import { realWorld } from "../../packages/leasehold/src/runtime/world.js";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";
import { asText, Authority } from "../support/pki.js";

/** Whole clusters with authentication: a client acquires a lease, an observer only reads. */

/** The refusal of a change of members, after its authorization, by a cluster that keeps no views. */
const mayChange = { code: "INVALID_CONFIG", message: expect.stringContaining("file for views") };

function removeOne(cluster: LocalCluster, options: FleaseOptions): Promise<unknown> {
  const addresses = cluster.urls.map((url) => url.slice("flease://".length));
  return changeMembers(addresses, options, { remove: "m2" }, {}, realWorld());
}

const newKey = () => randomBytes(32).toString("hex");
const keys = { member: newKey(), client: newKey(), observer: newKey() };

async function leaseTest(
  cluster: LocalCluster,
  asClient: OpenOptions,
  asObserver: OpenOptions,
): Promise<bigint[]> {
  const opened: Leases[] = [];
  const opening = async (options: OpenOptions) => {
    const leases = await open(...cluster.urls, options);
    opened.push(leases);
    return leases;
  };
  const [client, observer] = [await opening(asClient), await opening(asObserver)];
  const lease = await client.acquire("guarded");
  expect(await cluster.members[0]!.leases.tryAcquire("guarded")).toBeUndefined();
  expect(await observer.holder("guarded")).toMatchObject({ state: "held", holder: client.self });
  expect(await observer.list("guar")).toMatchObject([{ resource: "guarded" }]);
  await expect(observer.acquire("guarded")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await expect(observer.tryAcquire("free")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await lease.renew();
  await lease.release();
  await using second = await cluster.members[1]!.leases.acquire("guarded", { wait: "2s" });
  const reports = await clusterStatus(cluster.urls[0]!, asObserver);
  expect(reports.map((report) => report.reachable && report.status.state)).toEqual([
    "ready",
    "ready",
    "ready",
  ]);
  await Promise.all(opened.map((leases) => leases.close()));
  return [lease.token, second.token];
}

describe("with certificates", () => {
  const authority = new Authority();
  let cluster: LocalCluster;

  beforeAll(async () => {
    cluster = await startLocalCluster((id) => ({ tls: authority.for(`member/${id}`) }));
  });
  afterAll(async () => {
    await cluster.close();
    authority.remove();
  });

  test("leases are acquired, renewed and handed over; an observer reads and acquires nothing", async () => {
    const [first, second] = await leaseTest(
      cluster,
      { tls: asText(authority.for("client")) },
      { tls: authority.for("observer") },
    );
    expect(second).toBeGreaterThan(first!);
  });

  test("the members can be changed with a member's certificate, and with no client's", async () => {
    const asClient = removeOne(cluster, { tls: authority.for("client") });
    await expect(asClient).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await expect(removeOne(cluster, { tls: authority.for("member/m0") })).rejects.toMatchObject(mayChange);
  });

  test("a member's certificate also serves the clients on its machine", async () => {
    const leases = await open(...cluster.urls, { tls: authority.for("member/m0") });
    await using lease = await leases.acquire("by a member's client");
    expect(lease.remaining()).toBeGreaterThan(0);
    await leases.close();
  });

  test.each<[string, OpenOptions, string, RegExp]>([
    ["nothing", {}, "UNAUTHENTICATED", /only TLS/],
    ["a key", { key: keys.member }, "UNAUTHENTICATED", /one side uses a key and the other certificates/],
    ["an observer's", { role: "client", tls: authority.for("observer") }, "INVALID_CONFIG", /only observer/],
  ])("a client with %s gets the reason why that is not enough", async (_what, options, code, message) => {
    const opening = open(cluster.urls[0]!, { timeout: "1s", ...options });
    await expect(opening).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });
});

describe("with a key for each role", () => {
  let cluster: LocalCluster;
  const warnings: string[] = [];
  const logger = { info: () => {}, warn: (text: string) => warnings.push(text), error: () => {} };

  beforeAll(async () => {
    const key = Object.entries(keys)
      .map(([role, digits]) => `${role}: ${digits}`)
      .join("\n");
    cluster = await startLocalCluster({ key, logger });
  });
  afterAll(() => cluster.close());

  test("leases are acquired, renewed and handed over; an observer reads and acquires nothing", async () => {
    const [first, second] = await leaseTest(
      cluster,
      { key: `client: ${keys.client}` },
      { key: `observer: ${keys.observer}` },
    );
    expect(second).toBeGreaterThan(first!);
  });

  test("a member counts every refusal, and logs it once a minute for each cause", async () => {
    const [member] = cluster.members;
    const counted = () => member!.status().counters;
    const before = counted();
    warnings.length = 0;
    const url = cluster.urls[0]!;
    for (let attempt = 1; attempt <= 5; attempt++) {
      for (const wrong of [{ key: newKey() }, {}, { key: keys.member, cluster: `other ${attempt}` }]) {
        await expect(open(url, { timeout: "1s", ...wrong })).rejects.toThrow(url.slice("flease://".length));
      }
    }
    for (const name of ["auth.refused.key", "auth.refused.plain", "rejects.sent.cluster"]) {
      expect(counted()[name]! - before[name]!).toBe(5);
    }
    expect(warnings.toSorted()).toEqual([
      expect.stringMatching(/^no connection from 127\.0\.0\.1:\d+: its key is not ours/),
      expect.stringMatching(/^no connection from 127\.0\.0\.1:\d+: only TLS/),
      expect.stringMatching(
        /^no connection from 127\.0\.0\.1:\d+: the cluster differs: "leasehold" .*"other 1"/,
      ),
    ]);
  });

  test("the members can be changed with the members' key, and with no client's", async () => {
    const asClient = removeOne(cluster, { key: `client: ${keys.client}` });
    await expect(asClient).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await expect(removeOne(cluster, { key: keys.member })).rejects.toMatchObject(mayChange);
  });

  test("the members' key allows every role", async () => {
    const [first, second] = await leaseTest(
      cluster,
      { key: keys.member },
      { key: keys.member, role: "observer" },
    );
    expect(second).toBeGreaterThan(first!);
  });

  test.each<[string, OpenOptions, string, RegExp]>([
    ["nothing", {}, "UNAUTHENTICATED", /only TLS/],
    ["another key", { key: newKey() }, "UNAUTHENTICATED", /the key there is not ours/],
    [
      "the clients' key as the members'",
      { key: keys.client },
      "UNAUTHENTICATED",
      /the key there is not ours/,
    ],
    [
      "the observers' key as a client",
      { key: `observer: ${keys.observer}`, role: "client" },
      "INVALID_CONFIG",
      /no key that allows to be a client/,
    ],
    ["another cluster", { key: keys.member, cluster: "other" }, "CLUSTER_MISMATCH", /"other"/],
  ])("a client with %s gets the reason why that is not enough", async (_what, options, code, message) => {
    const opening = open(cluster.urls[0]!, { timeout: "1s", ...options });
    await expect(opening).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
