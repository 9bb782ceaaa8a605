import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterStatus, open, startMember } from "leasehold";
import type { Leases, Member } from "leasehold";
import { freePorts } from "../free-ports.js";

/** Three members in this process and their clients, over real sockets. */
describe("a cluster of three members", () => {
  let members: Member[] = [];
  let urls: string[] = [];
  const clients: Leases[] = [];

  async function client(name: string): Promise<Leases> {
    const leases = await open(...urls, { name });
    clients.push(leases);
    return leases;
  }

  beforeAll(async () => {
    const ports = await freePorts(3);
    const addresses = Object.fromEntries(
      ["a", "b", "c"].map((id, index) => [id, `127.0.0.1:${ports[index]}`]),
    );
    urls = Object.values(addresses).map((address) => `flease://${address}`);
    members = await Promise.all(
      ["a", "b", "c"].map((id) =>
        startMember({
          id,
          members: addresses,
          ttlMax: "1s",
          maxClockSkew: "10ms",
          rpcTimeout: "150ms",
        }),
      ),
    );
    await Promise.all(members.map((member) => member.ready()));
  });

  afterAll(async () => {
    await Promise.all(clients.map((leases) => leases.close()));
    await Promise.all(members.map((member) => member.close()));
  });

  test("grants a lease to one client, and shows it to the other", async () => {
    const [one, two] = [await client("one"), await client("two")];
    const lease = await one.acquire("first");
    expect(lease.remaining()).toBeGreaterThan(500);
    expect(await two.tryAcquire("first")).toBeUndefined();
    expect(await two.holder("first")).toMatchObject({ state: "held", holder: one.self, token: lease.token });
    expect(await two.list("fir")).toMatchObject([{ resource: "first", token: lease.token }]);
    await lease.release();
    const next = await two.acquire("first", { wait: "2s" });
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
    expect(await one.holder("first")).toMatchObject({ state: "free" });
  });

  test("keeps a lease for several times its ttl", async () => {
    const leases = await client("keeper");
    const lease = await leases.acquire("kept");
    const until = Date.now() + 3_000;
    while (Date.now() < until) {
      lease.assertHeld(100);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(lease.remaining()).toBeGreaterThan(0);
    await lease.release();
  });

  test("lets members acquire leases, too", async () => {
    const lease = await members[0]!.leases.acquire("by a member");
    expect(await members[1]!.leases.tryAcquire("by a member")).toBeUndefined();
    await lease.release();
    await using second = await members[1]!.leases.acquire("by a member");
    expect(second.token).toBeGreaterThan(lease.token);
  });

  test("finds all members through one address, and reports their states", async () => {
    const reports = await clusterStatus(urls[1]!);
    expect(reports.map((report) => report.id)).toEqual(["a", "b", "c"]);
    expect(reports.map((report) => report.reachable && report.status.state)).toEqual([
      "ready",
      "ready",
      "ready",
    ]);
  });
});
