import { expect, test } from "vitest";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import { open } from "../../index.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Cancellation } from "../../lease/provider.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import type { MemoryMediumOptions } from "../memory/memory-store.js";
import { listedMax } from "../quorum-read.js";
import { Observations, observedMax } from "../observations.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import type { Store } from "../store.js";

async function stage(media: Partial<MemoryMediumOptions> = {}) {
  const world = new VirtualWorld();
  const farm = new MemoryFarm(world, 3, { delayMs: 50, ...media });
  const manager = async (name: string, label?: string) =>
    new LeaseManager(await farm.open(name, world, { leaseMsMax: 1_000, label }), world);
  return { world, farm, alice: await manager("alice", "the first"), bob: await manager("bob") };
}

async function settledSoon<T>(world: VirtualWorld, promise: Promise<T>): Promise<T> {
  await world.advance(40);
  return promise;
}

test('open("delta+memory:name"): participants that open the same name contend, until the last has closed', async () => {
  const [alice, bob] = [
    await open("delta+memory:a", { name: "alice" }),
    await open("delta+memory:a", { name: "bob" }),
  ];
  const other = await open("delta+memory:b");
  const lease = await alice.acquire("r");
  expect(lease.holder).toMatch(/^alice\.[0-9a-f]{16}$/);
  expect(await bob.tryAcquire("r")).toBeUndefined();
  expect((await other.acquire("r")).token).toBe(1n);
  await lease.release();
  expect((await bob.acquire("r")).token).toBe(2n);
  await Promise.all([alice.close(), bob.close(), other.close()]);
  const again = await open("delta+memory:a");
  expect((await again.acquire("r")).token).toBe(1n);
  await again.close();
});

test("a lease that a clock fault ended is not released before its end, because the program may still be working", async () => {
  const { alice, bob, world } = await stage();
  const lease = await alice.acquire("r", { ttl: 1_000 });
  world.stepWall(-700);
  expect(lease.remaining()).toBe(0);
  await world.advance(300);
  for (const participant of [bob, alice]) {
    const trying = participant.tryAcquire("r", { ttl: 1_000 });
    await world.advance(150);
    expect(await trying).toBeUndefined();
  }
  // The same participant's wait can be ended, and it learns who has the resource.
  const stop = new AbortController();
  const own = alice.acquire("r", { signal: stop.signal }).catch((error: unknown) => error);
  await world.advance(20);
  expect(await alice.holder("r")).toMatchObject({ state: "held", holder: alice.self });
  stop.abort(new Error("no longer"));
  await world.settle();
  expect(await Promise.race([own, "waits"])).toEqual(new Error("no longer"));
  const waiting = bob.acquire("r", { ttl: 1_000, wait: 10_000 });
  await world.advance(5_000);
  expect((await waiting).token).toBeGreaterThan(lease.token);
});

test("a lease that a small step of the system time ended is not released before its end either", async () => {
  const { alice, bob, world } = await stage();
  const lease = await alice.acquire("r", { ttl: 1_000, autoRenew: false });
  await world.advance(850);
  lease.assertHeld(100);
  // Less than the clocks may be apart: the lease expires, and this is no clock fault.
  world.stepWall(99);
  await world.advance(60);
  expect(lease.signal.reason).toMatchObject({ reason: "expired" });
  for (const participant of [alice, bob])
    expect(await settledSoon(world, participant.tryAcquire("r", { ttl: 1_000 }))).toBeUndefined();
  await world.advance(90);
  expect(await settledSoon(world, alice.tryAcquire("r", { ttl: 1_000 }))).toMatchObject({ resource: "r" });
});

test("a lease that its own clock has ended is released at once", async () => {
  const { alice, bob, world } = await stage();
  await alice.acquire("r", { ttl: 1_000, autoRenew: false });
  await world.advance(1_001);
  expect(await settledSoon(world, bob.tryAcquire("r", { ttl: 1_000 }))).toMatchObject({ resource: "r" });
});

test("a grant that a clock fault has ended before a program had it is released at once", async () => {
  const { alice, bob, farm, world } = await stage();
  const carol = await farm.open("carol", world, { leaseMsMax: 1_000 });
  const request = { resource: "r", ttlMs: 1_000, timeoutMs: 500, contended: false, waiting: false };
  const outcome = await carol.attempt(request);
  if (outcome.kind !== "granted") throw new Error(outcome.kind);
  world.stepWall(-700);
  expect(outcome.grant.remainingMs()).toBe(0);
  await carol.release(outcome.grant, true);
  const lease = await settledSoon(world, bob.tryAcquire("r"));
  expect(lease).toMatchObject({ resource: "r" });
  await lease!.release();
  expect(await settledSoon(world, alice.tryAcquire("r"))).toMatchObject({ resource: "r" });
});

test("a list needs a majority, or a callback for what is missing", async () => {
  const { farm, alice, bob, world } = await stage();
  await alice.acquire("x/1");
  farm.media[0]!.failing = new LeaseholdError("STORE_UNAVAILABLE", "down");
  expect((await bob.list("x/")).map(({ resource }) => resource)).toEqual(["x/1"]);
  farm.media[1]!.stall("requests");
  const failure = bob.list("x/").catch((error: unknown) => error);
  await world.advance(50);
  expect(await failure).toMatchObject({ code: "NO_QUORUM" });
  let reported = "";
  const partial = bob.list("x/", { onIncomplete: (why) => (reported = why) });
  await world.advance(50);
  await partial;
  expect(reported).toContain("1 did, and 2 are needed: down");
});

test("a request to release takes no longer than its timeout, although it reads and then writes", async () => {
  const { farm, alice, bob, world } = await stage();
  await alice.acquire("r");
  for (const medium of farm.media) medium.latencyMs = { request: 20, answer: 20 };
  const ask = async (timeout: number, reported: unknown[]) => {
    const settle = async () => reported.push((await bob.requestRelease("r", { timeout })).done);
    const settled = settle().catch((error: unknown) => reported.push(error));
    await world.advance(timeout);
    expect(reported).toHaveLength(1);
    await settled;
  };
  const reported: unknown[] = [];
  await ask(60, reported);
  expect(reported).toMatchObject([{ code: "NO_QUORUM" }]);
  farm.media[2]!.stall("requests");
  const later: unknown[] = [];
  await ask(100, later);
  expect(later).toEqual([true]);
});

test("a list is refused, or reports what it lacks, and a watch fails, when stores have more than the limit", async () => {
  class Full extends Map<string, readonly Uint8Array[]> {
    override get size(): number {
      return listedMax;
    }
  }
  const { farm, world, alice } = await stage();
  await alice.acquire("x/1");
  await world.settle();
  const filled = (store: Store): Store => ({
    traits: store.traits,
    close: () => store.close(),
    perform: async (request) => {
      const answer = await store.perform(request);
      return answer.kind === "registers" ? { ...answer, registers: new Full(answer.registers) } : answer;
    },
  });
  const carol = new LeaseManager(await farm.open("carol", world, { leaseMsMax: 1_000 }, filled), world);
  await expect(carol.list("x/")).rejects.toMatchObject({ code: "WATCH_TOO_WIDE" });
  let reported = "";
  const held = await carol.list("x/", { onIncomplete: (why) => (reported = why) });
  expect(held.map(({ resource }) => resource)).toEqual(["x/1"]);
  expect(reported).toContain("100000 resources or more");
  const watching = carol
    .watch("x/")
    .next()
    .catch((error: unknown) => error);
  await world.advance(1_000);
  expect(await Promise.race([watching, Promise.resolve("waits")])).toMatchObject({ code: "WATCH_TOO_WIDE" });
});

test("an attempt that waits for the farm ends when its caller gives up", async () => {
  const { world, farm } = await stage();
  const provider = await farm.open("carol", world, { leaseMsMax: 1_000 });
  await world.advance(2_000);
  for (const medium of farm.media) medium.stall("requests");
  const cancellation: Cancellation & { cancelled: boolean } = { cancelled: false, onCancel: undefined };
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: true };
  const attempt = provider.attempt(request, cancellation);
  await world.settle();
  cancellation.cancelled = true;
  cancellation.onCancel?.();
  await world.settle();
  expect((await Promise.race([attempt, Promise.resolve({ kind: "waits" })])).kind).toBe("failed");
});

test("an explanation names the holder, its label, and each store with its record", async () => {
  const { farm, alice, bob, world } = await stage();
  const lease = await alice.acquire("r");
  await world.settle();
  farm.media[2]!.failing = new LeaseholdError("STORE_READ_ONLY", "read only");
  const explanation = await bob.explain("r");
  expect(explanation).toMatchObject({
    state: "held",
    confirmed: true,
    quorum: true,
    broken: false,
    holder: alice.self,
    token: lease.token,
    label: "the first",
    members: [
      { id: "store-0", state: "ready", lease: { holder: alice.self, state: "live" } },
      { id: "store-1", state: "ready" },
      { id: "store-2", state: "unreachable", reason: "read only" },
    ],
  });
  expect(explanation.reasons.join("; ")).toMatch(
    /held by alice\.1 \(the first\).*store-2 cannot be asked: read only/,
  );
});

test("a crashed holder is reported as gone when its lease has been observed to expire", async () => {
  const { alice, bob, world } = await stage();
  await alice.acquire("r", { autoRenew: false });
  expect(await bob.holder("r")).toMatchObject({ state: "held", confirmed: true });
  await world.advance(1_010);
  expect(await bob.holder("r")).toEqual({ state: "free", confirmed: true });
});

test("a break counts as done only if the holder can no longer get a majority", async () => {
  const { farm, alice, bob } = await stage();
  const lease = await alice.acquire("r");
  expect(await bob.break("nobody's")).toEqual({ done: false });
  for (const medium of farm.media.slice(1)) medium.failing = new LeaseholdError("STORE_UNAVAILABLE");
  await expect(bob.break("r")).rejects.toMatchObject({ code: "NO_QUORUM" });
  farm.media[1]!.failing = undefined;
  expect(await bob.break("r")).toMatchObject({ done: true, holder: alice.self, token: lease.token });
  expect(lease.remaining()).toBe(1_000);
  expect((await bob.explain("r")).broken).toBe(true);
});

test("a name whose record is too long for a store is refused, and no request is sent", async () => {
  const { farm, alice } = await stage({ bytesMax: 400 });
  const name = "r".repeat(300);
  await expect(alice.acquire(name)).rejects.toMatchObject({ code: "INVALID_NAME" });
  for (const medium of farm.media) expect(medium.cells(leaseRegister(name))).toEqual([]);
  await alice.acquire("r".repeat(20));
});

test(`no more than ${observedMax} resources are remembered; the wait for a forgotten one starts again`, () => {
  const observations = new Observations(0);
  const record = (resource: string): DeltaRecord => ({
    resource,
    epoch: 1n,
    number: 1n,
    writer: "w",
    nonce: 1,
    state: "held",
    leaseMs: 100,
    delayMs: 1,
  });
  for (let index = 0; index <= observedMax; index += 1) {
    const resource = `r${index}`;
    observations.see(resource, 0, record(resource), 0);
  }
  expect(observations.untilOverMs("r0", 0, record("r0"), 60)).toBe(100);
  expect(observations.untilOverMs("r1", 0, record("r1"), 60)).toBe(40);
});
