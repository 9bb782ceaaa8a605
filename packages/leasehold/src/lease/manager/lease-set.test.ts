import { inspect } from "node:util";
import { beforeEach, describe, expect, test } from "vitest";
import { watch } from "../../../../../test/support/scripted-provider.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import { MemoryGround } from "../../testing/memory-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import { inOrder, leasesOfSetMax } from "./lease-set.js";
import type { Lease, Leases } from "../types.js";

let cluster: MemoryCluster;
let alice: Leases;
let bob: Leases;

beforeEach(() => {
  cluster = new MemoryCluster();
  alice = cluster.open("alice");
  bob = cluster.open("bob");
});

describe("the order", () => {
  test("is that of the names' bytes in UTF-8, each once", () => {
    const names = ["z", "😀", "a/b", "ｚ", "a", "z", "ä", "😁", "a-b"];
    const bytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(inOrder(names)).toEqual([...new Set(bytes)]);
    expect(inOrder(names)).not.toEqual([...new Set(names.toSorted())]);
  });

  test("refuses no names, too many, and an invalid one", () => {
    const many = Array.from({ length: leasesOfSetMax + 1 }, (_, index) => `n${index}`);
    for (const names of [[], many, ["a", ""]])
      expect(() => inOrder(names)).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
    expect(inOrder(many.slice(1))).toHaveLength(leasesOfSetMax);
    expect(inOrder([...many.slice(1), "n1"])).toHaveLength(leasesOfSetMax);
  });

  test.each([["ab"], [undefined], [null], [5], [{}]])("refuses %o, which is not an array of names", (names) =>
    expect(() => inOrder(names as unknown as string[])).toThrow(
      expect.objectContaining({ code: "INVALID_NAME" }),
    ),
  );
});

describe("acquireAll", () => {
  test("acquires in order, whatever the order of its arguments", async () => {
    const order: string[] = [];
    const first = await bob.acquire("b");
    const both = watch(alice.acquireAll(["c", "b", "a"]));
    await cluster.advance(0);
    for (const name of ["a", "b", "c"]) if ((await bob.holder(name)).holder === alice.self) order.push(name);
    expect(order).toEqual(["a"]);
    await first.release();
    await cluster.advance(0);
    expect(both.value!.resources).toEqual(["a", "b", "c"]);
    expect(both.value!.leases.map(({ resource }) => resource)).toEqual(["a", "b", "c"]);
  });

  test("two calls with the same names in different orders never deadlock", async () => {
    const served: string[] = [];
    const call = async (leases: Leases, names: string[]) => {
      await using all = await leases.acquireAll(names, { wait: Infinity });
      served.push(all.get(names[0]!).resource);
      await new Promise<void>((resolve) => void cluster.world.timers.after(100, resolve));
    };
    void call(alice, ["a", "b"]);
    void call(bob, ["b", "a"]);
    void call(alice, ["b", "a"]);
    await cluster.advance("5s");
    expect(served.toSorted()).toEqual(["a", "b", "b"]);
  });

  test("shares one wait among all, and releases those it has on a timeout", async () => {
    const [b, c] = [await bob.acquire("b"), await bob.acquire("c")];
    const all = watch(alice.acquireAll(["a", "b", "c"], { wait: "10s" }));
    await cluster.advance("6s");
    await b.release();
    await cluster.advance("3s");
    expect([all.state, (await bob.holder("b")).holder]).toEqual(["pending", alice.self]);
    await cluster.advance("1100ms");
    const message = 'waited 10s, and 1 of 3 are missing, the first of them "c"';
    expect(all.error).toMatchObject({ code: "TIMEOUT", message });
    expect((await alice.list()).map(({ resource }) => resource)).toEqual(["c"]);
    await c.release();
  });

  test("with wait: 0 takes all that are free, or none", async () => {
    const c = await bob.acquire("c");
    await expect(alice.acquireAll(["a", "c"], { wait: 0 })).rejects.toMatchObject({ code: "LEASE_HELD" });
    expect(await bob.tryAcquire("a")).toBeDefined();
    await c.release();
    expect((await alice.acquireAll(["b", "c"], { wait: 0 })).leases).toHaveLength(2);
  });

  test("ends with its signal's reason, and releases those it has", async () => {
    await bob.acquire("b");
    const controller = new AbortController();
    const all = watch(alice.acquireAll(["a", "b"], { wait: Infinity, signal: controller.signal }));
    await cluster.advance("1s");
    const reason = new Error("enough");
    controller.abort(reason);
    await cluster.advance(0);
    expect(all.error).toBe(reason);
    expect(await bob.tryAcquire("a")).toBeDefined();
    await expect(alice.acquireAll(["c"], { signal: controller.signal })).rejects.toBe(reason);
  });

  test("rejects with the loss when one expires while it waits for another", async () => {
    await bob.acquire("b");
    const all = watch(alice.acquireAll(["a", "b"], { wait: Infinity, ttl: "2s", autoRenew: false }));
    await cluster.advance("1900ms");
    expect(all.state).toBe("pending");
    await cluster.advance("200ms");
    expect(all.error).toMatchObject({ code: "LEASE_LOST", resource: "a" });
  });

  const ends: [string, (lease: Lease) => unknown, object][] = [
    ["lost", ({ resource }) => cluster.lose(resource), { reason: "clock-fault" }],
    ["released", (lease) => lease.release(), { reason: "released" }],
  ];
  test.each(ends)("waits for no other when one was %s before the call was notified", async (_, end, why) => {
    await bob.acquire("b");
    alice.on("acquired", ({ lease }) => void end(lease));
    const all = watch(alice.acquireAll(["a", "b"], { wait: Infinity }));
    await cluster.advance(0);
    expect(all.error).toMatchObject({ code: "LEASE_LOST", resource: "a", ...why });
  });

  test("refuses wrong options under its own name", () =>
    expect(alice.acquireAll(["a"], { tt: 1 } as object)).rejects.toThrow('acquireAll has no option "tt"'));
});

describe("several leases", () => {
  test("are lost as soon as one is; the others stay held until they are released", async () => {
    const all = await alice.acquireAll(["a", "b"]);
    const { signal } = all;
    cluster.lose("b");
    await cluster.advance(0);
    expect(signal.aborted && signal.reason).toMatchObject({ code: "LEASE_LOST", resource: "b" });
    expect(all.remaining()).toBe(0);
    expect(() => all.assertHeld()).toThrow(expect.objectContaining({ resource: "b" }));
    await cluster.advance("1m");
    expect(all.get("a").remaining()).toBeGreaterThan(0);
    expect(await bob.tryAcquire("a")).toBeUndefined();
    await all.release();
    expect(await bob.tryAcquire("a")).toBeDefined();
  });

  test("have the least remaining time of all, and check it for each lease", async () => {
    const all = await alice.acquireAll(["a", "b"], { ttl: "6s", autoRenew: false });
    await cluster.advance("2s");
    await all.get("a").renew();
    expect(all.remaining()).toBe(all.get("b").remaining());
    expect(() => all.assertHeld(5_000)).toThrow(expect.objectContaining({ resource: "b" }));
    all.assertHeld(3_000);
  });

  test("abort their signal whichever check of the clocks finds the loss, and are acquired before they are lost", async () => {
    const outcomes = new Set<string>();
    for (let jumpAt = 1; jumpAt <= 40; jumpAt += 1) {
      const run = new VirtualWorld();
      let looks = 0;
      let aheadMs = 0;
      const monotonicMs = () => {
        looks += 1;
        if (looks === jumpAt) aheadMs += 5_000;
        return run.clock.monotonicMs() + aheadMs;
      };
      const world = {
        timers: run.timers,
        random: run.random,
        clock: { monotonicMs, wallMs: () => run.clock.wallMs() },
      };
      const provider = new MemoryProvider(new MemoryGround(), world, { name: "a", ttlMaxMs: 1_000 });
      const leases = new LeaseManager(provider, world);
      const emitted: string[] = [];
      for (const name of ["acquired", "lost"] as const) leases.on(name, () => emitted.push(name));
      const all = watch(leases.acquireAll(["a"]));
      await run.advance(0);
      if (all.state === "pending") continue;
      aheadMs += 5_000;
      await run.advance("2s");
      outcomes.add(`${all.state} ${all.value?.signal.aborted} ${all.value?.remaining()}`);
      expect(emitted).toEqual(["acquired", "lost"]);
    }
    expect([...outcomes].toSorted()).toEqual(["fulfilled true 0", "rejected undefined undefined"]);
  });

  test("abort their signal on the first check after a loss that no timer has noticed", async () => {
    const all = await alice.acquireAll(["a", "b"]);
    await cluster.world.block("1m");
    expect(all.signal.aborted).toBe(true);
  });

  test("are released together, from the last to the first, and count as not held from the call on", async () => {
    const all = await alice.acquireAll(["a", "b", "c"]);
    const ended: string[] = [];
    for (const lease of all.leases) lease.signal.addEventListener("abort", () => ended.push(lease.resource));
    const released = all.release();
    expect([all.remaining(), all.signal.aborted]).toEqual([0, true]);
    expect(ended).toEqual(["c", "b", "a"]);
    await released;
    await all[Symbol.asyncDispose]();
    expect(await bob.list()).toEqual([]);
  });

  test("can be found by name, and are plain data for logs", async () => {
    const all = await alice.acquireAll(["b", "a"]);
    expect(() => all.get("c")).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
    const plain = JSON.parse(JSON.stringify(all)) as ReturnType<typeof all.toJSON>;
    expect(plain.leases.map(({ token }) => token)).toEqual(all.leases.map(({ token }) => String(token)));
    expect(plain.remainingMs).toBe(15_000);
    expect(inspect(all, { depth: 9 })).toBe(inspect(all.toJSON(), { depth: 9 }));
    expect(inspect(all.get("a"))).toBe(inspect(all.get("a").toJSON()));
  });
});
