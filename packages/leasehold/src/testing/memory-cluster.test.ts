import { afterEach, describe, expect, test } from "vitest";
import { watch } from "../../../../test/support/scripted-provider.js";
import { MemoryCluster } from "./index.js";
import { openMemory } from "./memory-registry.js";
import { VirtualWorld } from "./virtual-world.js";

let cluster = new MemoryCluster();

afterEach(async () => {
  await cluster.close();
  cluster = new MemoryCluster();
});

describe("a participant that is cut off", () => {
  test("loses its lease at its end, and not before; then another gets the resource", async () => {
    const lease = await cluster.open("worker-1").acquire("reports");
    const next = watch(cluster.open("worker-2").acquire("reports"));
    cluster.cutOff("worker-1");
    await cluster.advance("14.9s");
    expect(lease.remaining()).toBe(100);
    expect(next.state).toBe("pending");
    await cluster.advance(100);
    expect(lease.signal.aborted).toBe(true);
    expect(next.value!.token).toBeGreaterThan(lease.token);
  });

  test("finds no quorum, and gets a lease soon after it is reconnected", async () => {
    const leases = cluster.open("worker-1");
    cluster.cutOff("worker-1");
    const waiting = watch(leases.acquire("a", { wait: "30s" }));
    const patient = watch(leases.acquire("b", { wait: "5m" }));
    await cluster.advance("30s");
    expect(waiting.error).toMatchObject({ code: "NO_QUORUM" });
    const asked = watch(leases.holder("a"));
    const listed = watch(leases.list());
    await cluster.advance("5s");
    expect(asked.value).toEqual({ state: "unknown" });
    expect(listed.error).toMatchObject({ code: "NO_QUORUM" });
    cluster.reconnect("worker-1");
    await cluster.advance("2s");
    expect(patient.state).toBe("fulfilled");
  });

  test("keeps its lease when it is reconnected in time", async () => {
    const lease = await cluster.open("worker-1").acquire("a");
    cluster.cutOff("worker-1");
    await cluster.advance("14s");
    cluster.reconnect("worker-1");
    await cluster.advance("1m");
    expect(lease.remaining()).toBeGreaterThan(0);
  });

  test("cannot notify the others of its release: they wait for the end of the lease", async () => {
    const leases = cluster.open("worker-1");
    const lease = await leases.acquire("a");
    cluster.cutOff("worker-1");
    await lease.release();
    expect(lease.remaining()).toBe(0);
    expect(await cluster.open("worker-2").tryAcquire("a")).toBeUndefined();
    cluster.reconnect("worker-1");
    const again = await leases.tryAcquire("a");
    expect(again!.token).toBeGreaterThan(lease.token);
  });
});

test("a paused process renews nothing, and its first check finds the lease lost", async () => {
  const lease = await cluster.open("worker-1").acquire("a");
  const next = watch(cluster.open("worker-2").acquire("a"));
  cluster.pause("worker-1");
  await cluster.advance("15s");
  expect(next.state).toBe("fulfilled");
  cluster.resume("worker-1");
  expect(lease.remaining()).toBe(0);
  expect(lease.signal.aborted).toBe(true);
  await cluster.advance("1m");
  next.value!.assertHeld();
});

test("a paused process gets its notifications late", async () => {
  const lease = await cluster.open("worker-1").acquire("a");
  const waiting = watch(cluster.open("worker-2").acquire("a"));
  await cluster.advance(10);
  cluster.pause("worker-2");
  await lease.release();
  await cluster.advance("1s");
  expect(waiting.state).toBe("pending");
  cluster.resume("worker-2");
  await cluster.advance(0);
  expect(waiting.state).toBe("fulfilled");
});

test("lose ends a tenure at once, and the holder is notified", async () => {
  const lease = await cluster.open("worker-1").acquire("a");
  expect(cluster.lose("a")).toBe(true);
  expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "clock-fault" });
  expect(cluster.lose("a")).toBe(false);
  expect(await cluster.open("worker-2").tryAcquire("a")).toBeDefined();
});

describe("clocks", () => {
  test("a suspended machine finds its leases lost: the system clock advanced", async () => {
    const lease = await cluster.open("worker-1").acquire("a");
    cluster.world.suspend("15s");
    expect(lease.remaining()).toBe(0);
    cluster.world.stepWall(-15_000);
    expect(lease.remaining()).toBe(0);
  });

  test("a short suspension costs only that much time", async () => {
    const lease = await cluster.open("worker-1").acquire("a");
    cluster.world.suspend("5s");
    expect(lease.remaining()).toBe(10_000);
    await cluster.advance("1m");
    lease.assertHeld();
  });

  test("a blocked event loop finds its leases lost before any timer ran", async () => {
    const lease = await cluster.open("worker-1").acquire("a");
    cluster.world.block("15s");
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
  });
});

test("closing leaves no timer behind, whatever is in progress", async () => {
  const [one, two] = [cluster.open("worker-1"), cluster.open("worker-2")];
  await one.acquire("a");
  const waiting = watch(two.acquire("a"));
  const led = watch(two.lead("b", () => new Promise<never>(() => {})));
  cluster.cutOff("worker-1");
  cluster.pause("worker-2");
  await cluster.advance("1s");
  await cluster.close();
  expect(waiting.error).toMatchObject({ code: "CLOSED" });
  expect(led.state).toBe("pending");
  expect(cluster.world.pendingTimers).toBe(0);
});

test("tokens rise over all tenures, even after an unobserved expiry", async () => {
  const leases = cluster.open("worker-1");
  const tokens: bigint[] = [];
  for (let round = 0; round < 5; round += 1) {
    const lease = await leases.acquire("a", { autoRenew: false });
    tokens.push(lease.token);
    if (round % 2 === 0) await lease.release();
    else cluster.world.block("15s");
  }
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => Number(a - b)));
});

test("a cluster has the ttlMax that it is given", async () => {
  const long = new MemoryCluster({ ttlMax: "1h", seed: 7 });
  const lease = await long.open("worker-1").acquire("a");
  expect(lease.remaining()).toBe(3_600_000);
  await long[Symbol.asyncDispose]();
});

describe("memory: addresses", () => {
  test("participants of one name contend, others do not; the last to close drops the ground", async () => {
    const world = new VirtualWorld();
    const [one, two, other] = [
      openMemory("x", world, "one"),
      openMemory("x", world, "two"),
      openMemory("y", world),
    ];
    const lease = await one.acquire("a");
    expect(lease.holder).toMatch(/^one\.\d+$/);
    expect(await two.tryAcquire("a")).toBeUndefined();
    expect(await other.tryAcquire("a")).toBeDefined();
    expect(await two.holder("a")).toMatchObject({ state: "held", holder: lease.holder, token: lease.token });
    expect((await two.list("")).map((hint) => hint.resource)).toEqual(["a"]);
    await one.close();
    expect(await two.tryAcquire("a")).toBeDefined();
    await Promise.all([two.close(), other.close()]);
    const later = openMemory("x", world);
    expect(await later.holder("a")).toEqual({ state: "free", confirmed: true });
    await later.close();
    expect(world.pendingTimers).toBe(0);
  });

  test("are at most a thousand, and one more is refused with INVALID_CONFIG", async () => {
    const world = new VirtualWorld();
    const opened = Array.from({ length: 1_000 }, (_, index) => openMemory(`n${index}`, world));
    expect(() => openMemory("one more", world)).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
    openMemory("n0", world);
    await Promise.all(opened.map((leases) => leases.close()));
  });
});
