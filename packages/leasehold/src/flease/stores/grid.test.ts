import { expect, test } from "vitest";
import { gridOptions, MemoryGrid } from "../../../../../test/support/memory-grid.js";
import type { MemoryMedium } from "../../delta/memory/memory-store.js";
import type { Leases } from "../../lease/types.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { encodeEntry } from "./codec.js";
import { entryRegister, settingsRegister } from "./registers.js";

/**
 * The cost of Flease on stores, and its behaviour under failures. Three stores in memory, in virtual time.
 */

const ttlMs = 1_000;

async function passing<T>(world: VirtualWorld, promise: Promise<T>, stepMs = 5): Promise<T> {
  const seen = { isSettled: false };
  const settle = () => {
    seen.isSettled = true;
  };
  promise.then(settle, settle);
  await world.settle();
  while (!seen.isSettled) await world.advance(stepMs);
  return promise;
}

async function opened(options: ConstructorParameters<typeof MemoryGrid>[1] = {}) {
  const world = new VirtualWorld();
  const grid = new MemoryGrid(world, options);
  const [alice, bob] = [await grid.open("alice"), await grid.open("bob")];
  return { world, grid, alice, bob };
}

function costOf(media: readonly MemoryMedium[]): [reads: number, writes: number] {
  const performed = media.map((medium) => medium.performed);
  return [
    performed.reduce((sum, { read }) => sum + read, 0),
    performed.reduce((sum, { replace }) => sum + replace, 0),
  ];
}

async function cost(media: readonly MemoryMedium[], what: () => Promise<unknown>): Promise<number[]> {
  const before = costOf(media);
  await what();
  return costOf(media).map((count, index) => count - before[index]!);
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "success",
    (error: { code: string }) => error.code,
  );

test("a free lease costs one read and one write at each store, a renewal one write, a refusal one read", async () => {
  const { grid, world, alice, bob } = await opened();
  const { media } = grid;
  let lease!: Awaited<ReturnType<Leases["acquire"]>>;
  const take = async () => {
    lease = await passing(world, alice.acquire("r", { autoRenew: false }));
  };
  expect(await cost(media, take)).toEqual([3, 3]);
  await world.advance(100);
  expect(await cost(media, () => passing(world, lease.renew()))).toEqual([0, 3]);
  expect(await cost(media, () => passing(world, bob.tryAcquire("r")))).toEqual([3, 0]);
  expect(await cost(media, () => passing(world, lease.release()))).toEqual([0, 3]);
  await grid.close();
});

test("a lease is acquired in one round of two operations, and taken over as soon as it has expired", async () => {
  const { grid, world, alice, bob } = await opened();
  for (const medium of grid.media) medium.latencyMs = { request: 5, answer: 5 };
  const beganMs = world.clock.monotonicMs();
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs, autoRenew: false }), 1);
  expect(world.clock.monotonicMs() - beganMs).toBe(20);
  const leftMs = lease.remaining();
  const beforeMs = world.clock.monotonicMs();
  const next = await passing(world, bob.acquire("r", { ttl: ttlMs }), 1);
  const afterEndMs = world.clock.monotonicMs() - beforeMs - leftMs;
  // ε, at most one interval of polling, and two rounds of two operations.
  expect(afterEndMs).toBeLessThanOrEqual(gridOptions.maxClockSkewMs + 10 + 2 * 20 + 20);
  expect(next.token).toBeGreaterThan(lease.token);
  await passing(world, grid.close());
});

test("no request is answered before the write is in the store", async () => {
  const { grid, world, alice, bob } = await opened();
  const [one, two] = grid.media as [MemoryMedium, MemoryMedium];
  await passing(world, alice.tryAcquire("warm")); // Settings have been compared.
  one.stall("answers");
  two.stall("answers");
  const taking = codeOf(alice.acquire("r", { ttl: ttlMs, wait: 300 }));
  await world.advance(500);
  expect(await taking).toBe("NO_QUORUM");
  one.resume();
  two.resume();
  // A lease written without an answer was withdrawn, or blocks until it expires; it was never held.
  const lease = await passing(world, bob.acquire("r", { ttl: ttlMs, wait: 2 * ttlMs }));
  lease.assertHeld();
  await passing(world, grid.close());
});

test("of two concurrent participants one writes, and the other finds a conflict and recomputes", async () => {
  const { grid, world, alice, bob } = await opened();
  for (const medium of grid.media) medium.latencyMs = { request: 1, answer: 1 };
  const rounds = Array.from({ length: 20 }, async (_, round) => {
    const both = [alice.tryAcquire(`r${round}`), bob.tryAcquire(`r${round}`)];
    return (await Promise.all(both)).filter((lease) => lease !== undefined).length;
  });
  const winners = await passing(world, Promise.all(rounds));
  expect(Math.max(...winners)).toBe(1);
  expect(winners.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(10);
  await passing(world, grid.close());
});

test("a store that forgets counts again when every lease it may have known is over, and not before", async () => {
  const { grid, world, alice, bob } = await opened();
  const [one, two] = grid.media as [MemoryMedium, MemoryMedium];
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs }));
  one.forget();
  two.stall("requests");
  await world.advance(50);
  // Two of three report nothing: one has forgotten, one is silent. Nobody may believe the first.
  expect(await passing(world, codeOf(bob.acquire("r", { ttl: ttlMs, wait: 400 })))).toBe("NO_QUORUM");
  two.resume();
  lease.assertHeld();
  expect(await passing(world, bob.tryAcquire("r", { ttl: ttlMs }))).toBeUndefined();
  await world.advance(3 * ttlMs);
  two.stall("requests");
  await world.advance(ttlMs);
  // The store that had forgotten has learnt of the lease from its renewals.
  lease.assertHeld();
  expect(await passing(world, bob.tryAcquire("r", { ttl: ttlMs }))).toBeUndefined();
  await passing(world, grid.close());
});

test("other settings are refused (CONFIG_MISMATCH), at opening", async () => {
  const { grid } = await opened();
  for (const more of [{ maxClockSkewMs: 21 }, { ttlMaxMs: 999 }, { clockRateError: 0.002 }])
    expect(await codeOf(grid.open("carol", more))).toBe("CONFIG_MISMATCH");
  expect(await codeOf(grid.open("carol", { delayMs: 51 }))).toBe("success");
  expect(new TextDecoder().decode(grid.media[0]!.cells(settingsRegister)[0])).toContain(
    '{"maxClockSkewMs":20,"ttlMaxMs":1000,"clockRateError":0.1,"stores":3}',
  );
  await grid.close();
});

test("stores that cannot compare and set, or have no room for an entry, are refused (STORE_UNFIT)", async () => {
  for (const unfit of [{ kind: "slotted" }, { bytesMax: 512 }] as const) {
    const grid = new MemoryGrid(new VirtualWorld(), unfit);
    expect(await codeOf(grid.open("alice"))).toBe("STORE_UNFIT");
  }
});

const encoder = new TextEncoder();
const farFuture = (wallMs: number) =>
  encodeEntry({
    resource: "r",
    entry: {
      promisedNumber: 1,
      promisedOwner: "x.1",
      leaseOwner: "x.1",
      leaseNumber: 1,
      leaseSequence: 0,
      leaseExpiresWallMs: wallMs + 365 * 86_400_000,
      released: false,
      token: 1,
      barredOwner: "",
    },
  });

test.each([
  ["STORE_FOREIGN", () => encoder.encode("somebody else's")],
  ["STORE_FOREIGN", () => encoder.encode("leasehold-flease/2 {}")],
  ["STORE_CORRUPT", () => encoder.encode("leasehold-flease/1 {} 00000000")],
  ["STORE_CORRUPT", (wallMs: number) => farFuture(wallMs).subarray(0, 100)],
  ["CLOCK_SKEW", farFuture],
])("a record that cannot be ours is %s, never free, and stays as it is", async (code, contentAt) => {
  const { grid, world, alice } = await opened();
  const content = contentAt(world.clock.wallMs());
  const [one, two] = grid.media as [MemoryMedium, MemoryMedium];
  one.plant(entryRegister("r"), content);
  // One of three stores is effectively silent.
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs }));
  await passing(world, lease.release());
  two.plant(entryRegister("r"), content);
  expect(await passing(world, codeOf(alice.acquire("r", { ttl: ttlMs, wait: 0 })))).toBe(code);
  for (const medium of [one, two]) expect(medium.cells(entryRegister("r"))).toEqual([content]);
  await passing(world, grid.close());
});

test("a request to the holder arrives with its next renewal", async () => {
  const { grid, world, alice, bob } = await opened();
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs }));
  const asked = passing(world, bob.requestRelease("r"));
  expect((await asked).done).toBe(true);
  expect(lease.releaseRequested.aborted).toBe(true);
  expect(lease.remaining()).toBeGreaterThan(0);
  await passing(world, grid.close());
});

test("a lease that a small step of the system time ended is acquired by nobody before its end, not even this process", async () => {
  const { grid, world, alice, bob } = await opened();
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs, autoRenew: false }));
  await world.advance(lease.remaining() - 14);
  world.stepWall(9);
  await world.advance(lease.remaining() + 1);
  expect(lease.signal.reason).toMatchObject({ reason: "expired" });
  for (const participant of [alice, bob])
    expect(await passing(world, participant.tryAcquire("r"), 1)).toBeUndefined();
  await world.advance(60);
  expect(await passing(world, alice.tryAcquire("r"))).toMatchObject({ resource: "r" });
  await passing(world, grid.close());
});

test("a clock fault ends every lease, and the process continues as another owner", async () => {
  const faults: string[] = [];
  const world = new VirtualWorld();
  const grid = new MemoryGrid(world);
  const alice = await grid.open("alice", { onFault: (reason) => faults.push(reason) });
  const lease = await passing(world, alice.acquire("r", { ttl: ttlMs }));
  const { self } = alice;
  world.stepWall(-5_000);
  await world.advance(2_000);
  expect([faults.length > 0, lease.remaining(), alice.self === self]).toEqual([true, 0, false]);
  await passing(world, grid.close());
});
