import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Lease, type LeaseEvents, type Leases, type Member, open, startMember } from "leasehold";
import { freePorts } from "../free-ports.js";

/** Each call keeps its caller's `AsyncLocalStorage` context in all work done for it. */

const store = new AsyncLocalStorage<string>();
let members: Member[];
let url: string;
let keptAlive: NodeJS.Timeout;

beforeAll(async () => {
  keptAlive = setInterval(() => undefined, 1_000);
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const settings = { ttlMax: "500ms", maxClockSkew: "10ms", rpcTimeout: "100ms", insecure: true };
  members = [await startMember({ id: "a", members: { a: address }, ...settings })];
  await members[0]!.ready();
  url = `flease://${address}`;
});

afterAll(async () => {
  clearInterval(keptAlive);
  await Promise.all(members.map((member) => member.close()));
});

describe.each(["memory:", "flease://"])("on %s", (ground) => {
  let leases: Leases;

  beforeAll(async () => {
    leases = await store.run("opener", () => open(ground === "memory:" ? "memory:contexts" : url));
  });

  afterAll(() => store.run("closer", () => leases.close()));

  test("a waiting call continues in the context of its caller, and not of the releasing holder", async () => {
    const first = await leases.acquire("waits");
    const contexts: unknown[] = [];
    const second = store.run("caller", async () => {
      await using lease = await leases.acquire("waits");
      contexts.push(store.getStore(), lease.resource);
    });
    await store.run("other", () => first.release());
    await second;
    expect(contexts).toEqual(["caller", "waits"]);
  });

  test("work of using and lead runs in the context of its caller", async () => {
    const context = () => Promise.resolve(store.getStore());
    expect(await store.run("user", () => leases.using("work", context))).toBe("user");
    expect(await store.run("user", () => leases.using(["work", "more"], context))).toBe("user");
    expect(await store.run("leader", () => leases.lead("work", context))).toBe("leader");
  });

  test("listeners of a lease's signal run in the context of its first use, whatever ends the lease", async () => {
    const ends: [string, { autoRenew?: boolean }, (lease: Lease) => unknown][] = [
      ["expires", { autoRenew: false }, () => undefined],
      ["is released", {}, (lease) => store.run("other", () => lease.release())],
    ];
    for (const [name, options, end] of ends) {
      // Another lease arms the shared timer first, in a context of its own.
      await using _armed = await store.run("armer", () => leases.acquire("armer", { ttl: "430ms" }));
      const lease = await store.run("caller", () => leases.acquire(name, { ttl: "480ms", ...options }));
      const seen = store.run("caller", async () => {
        const contexts: unknown[] = [];
        lease.signal.addEventListener("abort", () => contexts.push(store.getStore()));
        await once(lease.signal, "abort");
        return contexts;
      });
      await end(lease);
      expect(await seen).toEqual(["caller"]);
    }
  });

  test("diagnostics channels report each lease", async () => {
    const heard: string[] = [];
    const hear = (event: unknown, name: string | symbol) => {
      const { lease } = event as LeaseEvents["acquired"];
      if (lease.resource === "told") heard.push(String(name));
    };
    for (const name of ["acquired", "released"]) subscribe(`leasehold:${name}`, hear);
    await leases.using("told", () => undefined);
    for (const name of ["acquired", "released"]) unsubscribe(`leasehold:${name}`, hear);
    await leases.using("told", () => undefined);
    expect(heard).toEqual(["leasehold:acquired", "leasehold:released"]);
  });
});
