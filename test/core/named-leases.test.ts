import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NamedLease } from "../../packages/leasehold/src/etcd/named-leases.js";
import { mainPath } from "../support/built.js";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";
import { etcdctl } from "./support/etcdctl.js";

/** `openNamedLeases` of the built package, against real servers. */

const entry = join(mainPath, "../../entry/etcd.js");
const { openNamedLeases } = (await import(
  entry
)) as typeof import("../../packages/leasehold/src/entry/etcd.js");

const hex = ({ id }: NamedLease) => id.toString(16);

describe("three servers in cleartext", () => {
  let cluster: CoreCluster;
  beforeAll(async () => {
    cluster = await CoreCluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  const open = () => openNamedLeases([`core://${cluster.endpoints}`]);

  test("of ten that register one name at once, one gets it; keys hang on it; it is free when it ends", async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, open));
    try {
      const all = await Promise.all(clients.map((each) => each.register("carts/7", "30s")));
      const [lease, ...more] = all.filter((each) => each !== undefined);
      expect(more).toEqual([]);
      expect(lease).toMatchObject({ name: "carts/7", ttlMs: 30_000 });
      const [named] = clients;
      expect(await named!.find("carts/7")).toEqual(lease);
      expect(await named!.find("carts/8")).toBeUndefined();
      expect(await named!.refresh(lease!)).toBe(true);
      await etcdctl(cluster.endpoints, "put", "cart", "full", `--lease=${hex(lease!)}`);
      expect(await etcdctl(cluster.endpoints, "lease", "timetolive", hex(lease!), "--keys")).toMatch(
        /\[cart\]/,
      );
      await named!.revoke(lease!);
      expect(await etcdctl(cluster.endpoints, "get", "cart")).toBe("");
      expect(await named!.refresh(lease!)).toBe(false);
      expect(await named!.register("carts/7", "30s")).toMatchObject({ name: "carts/7" });
    } finally {
      for (const each of clients) each.close();
    }
  });

  test("it outlives its leader, and ends when nobody refreshes it", async () => {
    const named = await open();
    try {
      const kept = await named.register("kept", "30s");
      const left = await named.register("left", "2s");
      await (await cluster.leader()).kill();
      expect(await named.find("kept")).toEqual(kept);
      expect(await named.register("kept", "30s")).toBeUndefined();
      const taken = async () => (await named.register("left", "2s"))?.id;
      await expect.poll(taken, { timeout: 15_000, interval: 200 }).toBeDefined();
      expect(await named.refresh(left!)).toBe(false);
    } finally {
      named.close();
      for (const server of cluster.servers) if (!server.isRunning) server.start();
    }
  });

  test("the same as JSON: one gets a name, the others are told, and it is a lease of etcd's", async () => {
    const [first] = cluster.endpoints.split(",");
    const ask = async (path: string, body: object) => {
      const answer = await fetch(`http://${first}${path}`, { method: "POST", body: JSON.stringify(body) });
      return { status: answer.status, said: (await answer.json()) as Record<string, unknown> };
    };
    const own = "/leasehold/v1/lease";
    expect(await ask(`${own}/find`, { name: "json" })).toMatchObject({ status: 404, said: { code: 5 } });
    const { said, status } = await ask(`${own}/register`, {
      name: "json",
      ttl: 30,
      id: "4611686018427387907",
    });
    expect([status, said]).toMatchObject([200, { id: "4611686018427387907", ttl: "30" }]);
    const again = await ask(`${own}/register`, { name: "json", ttl: "30" });
    expect(again).toMatchObject({
      status: 409,
      said: { code: 6, message: expect.stringContaining("exists already") as string },
    });
    const found = { status: 200, said: { id: said["id"], granted_ttl: "30" } };
    expect(await ask(`${own}/find`, { name: "json" })).toMatchObject(found);
    expect(await ask(`${own}/register`, {})).toMatchObject({ status: 400, said: { code: 3 } });
    await ask("/v3/lease/revoke", { ID: said["id"] });
    expect(await ask(`${own}/find`, { name: "json" })).toMatchObject({ status: 404 });
  });

  test("what cannot be a name or a time is refused before anything is asked", async () => {
    const named = await open();
    try {
      for (const name of ["", "x".repeat(1_025), "\ud800"])
        await expect(named.register(name, "5s")).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(named.register("a", "500ms")).rejects.toMatchObject({ code: "TTL_OUT_OF_RANGE" });
    } finally {
      named.close();
    }
  });

  test("while rights are on, who is no user may neither register nor find", async () => {
    const root = ["--user", "root:pw"];
    for (const line of ["user add root:pw", "user grant-role root root", "user add ann:pw", "auth enable"])
      await etcdctl(cluster.endpoints, ...line.split(" "));
    const address = `core://${cluster.endpoints}`;
    try {
      // Even opening fails: the first request to the core is refused.
      await expect(openNamedLeases([address])).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
      const wrong = openNamedLeases([address], { user: "ann", password: "no" });
      await expect(wrong).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
      // No key is Ann's, and none is asked for.
      const named = await openNamedLeases([address], { user: "ann", password: "pw" });
      expect(await named.register("of ann", "30s")).toMatchObject({ name: "of ann" });
      named.close();
    } finally {
      await etcdctl(cluster.endpoints, ...root, "auth", "disable");
    }
  });
});

test("over TLS with certificates on both sides, and not without one", async () => {
  const authority = new Authority();
  const usage = ["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"];
  const tls = authority.issue(usage);
  const flags = ["--cert-file", tls.cert, "--key-file", tls.key, "--trusted-ca-file", tls.ca];
  const peer = flags.map((word) => word.replace(/^--/, "--peer-"));
  const all = [...flags, "--client-cert-auth", ...peer];
  const cluster = await CoreCluster.create(1, { scheme: "https", flags: all });
  try {
    cluster.servers[0]!.start();
    const address = `core://${cluster.endpoints}`;
    const opened = () => openNamedLeases([address], { tls }).catch(() => undefined);
    let named = await opened();
    for (let tries = 0; named === undefined && tries < 50; tries += 1) {
      await sleep(200);
      named = await opened();
    }
    expect(await named!.register("a", "5s")).toMatchObject({ name: "a" });
    expect(await named!.register("a", "5s")).toBeUndefined();
    named!.close();
    await expect(openNamedLeases([address], { timeout: "2s" })).rejects.toThrow(
      /no server of the core could be reached|no answer from the core/,
    );
  } finally {
    await cluster[Symbol.asyncDispose]();
    authority.remove();
  }
});

test("an etcd has none, and says so", async () => {
  const cluster = await CoreCluster.start(1, { program: "etcd" });
  try {
    const named = await openNamedLeases([`core://${cluster.endpoints}`]);
    await expect(named.register("a", "5s")).rejects.toMatchObject({ code: "UNSUPPORTED" });
    named.close();
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
});
