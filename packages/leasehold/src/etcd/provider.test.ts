import { beforeEach, describe, expect, test } from "vitest";
import { MemoryCore, openMemoryCore, virtualCoreGround } from "../../../../test/support/memory-core.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Lease } from "../lease/types.js";
import { runConformance } from "../testing/conformance.js";
import { VirtualWorld } from "../testing/virtual-world.js";

describe("leases of a core on virtual time", () => {
  runConformance({ describe, test }, async () => virtualCoreGround());
});

describe("leases of a core whose operations are carried out twice", () => {
  runConformance({ describe, test }, async () =>
    virtualCoreGround((core) => {
      core.fate = () => "repeated";
    }),
  );
});

const ttlMs = 3_000;
const name = "jobs/a";
const key = `leasehold/leases/${name}`;

let world: VirtualWorld;
let core: MemoryCore;
let alice: LeaseManager;
let bob: LeaseManager;

const open = (who: string) => new LeaseManager(openMemoryCore(core, who, world), world);

beforeEach(() => {
  world = new VirtualWorld();
  core = new MemoryCore(world);
  alice = open("alice");
  bob = open("bob");
});

/** Lets virtual time pass until the promise settles. */
async function soon<T>(promise: Promise<T>, withinMs = 20_000): Promise<T> {
  const seen = { isSettled: false };
  promise.then(
    () => (seen.isSettled = true),
    () => (seen.isSettled = true),
  );
  for (let passedMs = 0; passedMs < withinMs && !seen.isSettled; passedMs += 5) await world.advance(5);
  expect(seen.isSettled).toBe(true);
  return promise;
}

const take = (leases: LeaseManager, options = {}): Promise<Lease> =>
  soon(leases.acquire(name, { ttl: ttlMs, ...options }));

/** Loses answers of this kind: the first `count`, or all. */
function loseAnswers(operation: string, count = Infinity): void {
  let left = count;
  core.fate = (each) => (each === operation && left-- > 0 ? "answer lost" : "answered");
}

describe("a tenure", () => {
  test("has the create revision of its key as its token", async () => {
    const lease = await take(alice);
    expect(lease.token).toBe(core.keys.get(key)!.createRevision);
  });

  test("is counted from before the request, and ends before the core's lease", async () => {
    core.latencyMs = 200;
    const lease = await take(alice, { autoRenew: false });
    // The read, the grant and the put took 200 ms each; the read was over when the grant was requested.
    expect(lease.remaining()).toBeLessThanOrEqual(ttlMs - 400);
    expect(lease.remaining()).toBeGreaterThan(ttlMs - 410);
  });

  test("ends by the system clock if the steady one stopped", async () => {
    const lease = await take(alice);
    world.suspend(ttlMs);
    expect(lease.remaining()).toBe(0);
  });

  test("that a clock fault has ended is not released early, as the program may still be working", async () => {
    const lease = await take(alice);
    world.stepWall(-ttlMs / 2);
    expect(lease.remaining()).toBe(0);
    await world.advance(100);
    for (const participant of [bob, alice])
      expect(await soon(participant.tryAcquire(name, { ttl: ttlMs }))).toBeUndefined();
    // This participant's own wait can be cancelled, and it sees who holds the resource.
    const stop = new AbortController();
    const own = alice.acquire(name, { signal: stop.signal }).catch((error: unknown) => error);
    await world.advance(20);
    expect(await soon(alice.holder(name))).toMatchObject({ state: "held", holder: alice.self });
    stop.abort(new Error("no longer"));
    await world.settle();
    expect(await Promise.race([own, "waits"])).toEqual(new Error("no longer"));
    await take(bob, { wait: 3 * ttlMs });
  });

  test("that a small step of the system time has ended is not released early, either", async () => {
    const lease = await take(alice, { autoRenew: false });
    await world.advance(0.9 * ttlMs);
    lease.assertHeld(200);
    // Less than the tolerated difference of the clocks: the tenure expires, without a clock fault.
    world.stepWall(ttlMs / 10 - 1);
    await world.advance(20);
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    for (const participant of [bob, alice])
      expect(await soon(participant.tryAcquire(name, { ttl: ttlMs }))).toBeUndefined();
    await world.advance(ttlMs / 10);
    expect(await soon(alice.tryAcquire(name, { ttl: ttlMs }))).toBeDefined();
  });

  test("that has expired by its own clock is released at once", async () => {
    await take(alice, { autoRenew: false });
    await world.advance(ttlMs + 1);
    expect(core.leases.size).toBe(0);
    expect(await soon(bob.tryAcquire(name, { ttl: ttlMs }))).toBeDefined();
  });

  test("that a clock fault ended before the program received it is released at once", async () => {
    core.latencyMs = 20;
    const trying = alice.tryAcquire(name, { ttl: ttlMs }).catch((error: unknown) => error);
    for (let passedMs = 0; passedMs < 1_000 && core.keys.size === 0; passedMs += 1) await world.advance(1);
    world.stepWall(-ttlMs / 2);
    await world.advance(100);
    expect(await trying).toMatchObject({ code: "NO_QUORUM" });
    expect(core.leases.size).toBe(0);
    for (const participant of [bob, alice]) {
      const lease = await soon(participant.tryAcquire(name, { ttl: ttlMs }));
      expect(lease).toBeDefined();
      await soon(lease!.release());
    }
  });

  test("a TTL between whole seconds is rounded up for the core, and counted exactly", async () => {
    const lease = await take(alice, { ttl: 1_500, autoRenew: false });
    expect(lease.remaining()).toBeLessThanOrEqual(1_500);
    expect([...core.leases.values()][0]!.seconds).toBe(2);
  });
});

describe("an attempt", () => {
  test("whose answer was lost after the key was created deletes the key, and another participant acquires", async () => {
    loseAnswers("create", 1);
    // Shorter than the lease, so that a leftover key would still exist.
    await expect(soon(alice.acquire(name, { ttl: ttlMs, wait: 500 }))).rejects.toThrow(
      expect.objectContaining({ code: "NO_QUORUM" }),
    );
    expect(core.keys.size + core.leases.size).toBe(0);
    await take(bob);
  });

  test("that could not delete its key finds it the next time; nobody holds meanwhile", async () => {
    let isCreated = false;
    core.fate = (each) => {
      if (each === "create" && !isCreated) {
        isCreated = true;
        return "answer lost";
      }
      return each === "revokeLease" ? "request lost" : "answered";
    };
    await soon(alice.acquire(name, { ttl: ttlMs, wait: 500 }).catch((error: unknown) => error));
    const left = core.keys.get(key)!;
    expect(left).toBeDefined();
    expect(await soon(bob.tryAcquire(name, { ttl: ttlMs }))).toBeUndefined();
    core.fate = () => "answered";
    const lease = await soon(alice.tryAcquire(name, { ttl: ttlMs }), 100);
    expect(lease!.token).toBeGreaterThan(left.createRevision);
  });

  test("that loses the race leaves no lease of the core behind", async () => {
    const both = [alice, bob].map((leases) => leases.tryAcquire(name, { ttl: ttlMs }));
    const leases = await soon(Promise.all(both));
    expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
    expect(core.leases.size).toBe(1);
  });

  test("for a held resource writes nothing", async () => {
    await take(alice);
    const before = { ...core.counts };
    expect(await soon(bob.tryAcquire(name, { ttl: ttlMs }))).toBeUndefined();
    expect(core.counts).toEqual({ ...before, read: before.read + 1 });
  });

  test("for a key that Leasehold did not write is refused, and the key stays", async () => {
    core.put(key, "mine", 0n);
    expect(await soon(alice.tryAcquire(name, { ttl: ttlMs }))).toBeUndefined();
    expect(core.keys.get(key)!.value).toBe("mine");
    expect(await soon(bob.requestRelease(name))).toMatchObject({ done: false });
  });
});

describe("a renewal", () => {
  test("is counted from before its request", async () => {
    const lease = await take(alice, { autoRenew: false });
    core.latencyMs = 200;
    await soon(lease.renew());
    // The refresh and the read took 200 ms each.
    expect(lease.remaining()).toBeLessThanOrEqual(ttlMs - 400);
  });

  test("of a lease that the core has ended ends the tenure", async () => {
    core.isMute = true;
    const lease = await take(alice, { autoRenew: false });
    core.revoke([...core.leases.keys()][0]!);
    await expect(soon(lease.renew())).rejects.toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
  });

  test("does not count when the key was deleted while the core's lease lives", async () => {
    core.isMute = true;
    const lease = await take(alice, { autoRenew: false });
    core.delete(key);
    await expect(soon(lease.renew())).rejects.toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
    expect(core.leases.size).toBe(0);
  });

  test("does not count when the key was deleted between the refresh and the read", async () => {
    core.isMute = true;
    const lease = await take(alice, { autoRenew: false });
    core.done = (operation) => {
      if (operation === "refreshLease") core.delete(key);
    };
    await expect(soon(lease.renew())).rejects.toThrow(expect.objectContaining({ code: "LEASE_LOST" }));
  });

  test("by a leader that was deposed meanwhile does not count", async () => {
    const lease = await take(alice, { autoRenew: false });
    core.term = 2n;
    core.refreshTerm = 1n;
    await world.advance(1_000);
    const leftMs = lease.remaining();
    await expect(soon(lease.renew())).rejects.toThrow(expect.objectContaining({ code: "NO_QUORUM" }));
    expect(lease.remaining()).toBeLessThan(leftMs);
    core.refreshTerm = undefined;
    await soon(lease.renew());
    expect(lease.remaining()).toBeGreaterThan(leftMs);
  });

  test("during one change of leader is repeated at once", async () => {
    const lease = await take(alice, { autoRenew: false });
    await world.advance(1_000);
    const leftMs = lease.remaining();
    core.done = (operation) => {
      if (operation !== "refreshLease" || core.term > 1n) return;
      core.refreshTerm = undefined;
      core.term = 2n;
    };
    core.refreshTerm = 1n;
    await soon(lease.renew());
    expect(lease.remaining()).toBeGreaterThan(leftMs);
  });

  test("that was in flight when the lease was broken does not count", async () => {
    core.isMute = true;
    const lease = await take(alice, { autoRenew: false });
    await world.advance(1_000);
    const endMs = world.clock.monotonicMs() + lease.remaining();
    core.done = (operation) => {
      if (operation !== "refreshLease") return;
      const { value, leaseId } = core.keys.get(key)!;
      core.put(key, JSON.stringify({ ...JSON.parse(value), asked: { by: "bob", broken: true } }), leaseId);
    };
    await soon(lease.renew().catch(() => undefined));
    expect(world.clock.monotonicMs() + lease.remaining()).toBeCloseTo(endMs, 3);
    await world.advance(ttlMs);
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "broken" });
  });

  test("without an answer does not extend the lease", async () => {
    const lease = await take(alice, { autoRenew: false });
    const endMs = world.clock.monotonicMs() + lease.remaining();
    core.fate = () => "answer lost";
    await expect(soon(lease.renew())).rejects.toThrow(expect.objectContaining({ code: "NO_QUORUM" }));
    expect(world.clock.monotonicMs() + lease.remaining()).toBeCloseTo(endMs, 3);
  });
});

test("the deletion of the key ends the tenure at once, by the watch", async () => {
  const lease = await take(alice);
  const { signal } = lease;
  core.delete(key);
  await world.advance(10);
  expect(signal.aborted).toBe(true);
});

test("a release frees the key even if its first request was lost", async () => {
  const lease = await take(alice);
  loseAnswers("revokeLease", 1);
  await soon(lease.release());
  expect(core.keys.size).toBe(0);
});

describe("waiters", () => {
  test("learn of a release within a round trip", async () => {
    const lease = await take(alice);
    const waiting = bob.acquire(name, { ttl: ttlMs });
    await world.advance(500);
    void lease.release();
    // Time for the release, its notification, and three operations.
    await world.advance(5 * core.latencyMs + 5);
    expect((await waiting).remaining()).toBeGreaterThan(0);
  });

  test("acquire a released lease even without a watch", async () => {
    core.isMute = true;
    const lease = await take(alice);
    const waiting = bob.acquire(name, { ttl: ttlMs });
    await world.advance(500);
    void lease.release();
    expect((await soon(waiting, 4_000)).remaining()).toBeGreaterThan(0);
  });

  test("a waiter that gives up leaves no watch behind", async () => {
    await take(alice);
    await soon(bob.acquire(name, { ttl: ttlMs, wait: 300 }).catch(() => undefined));
    const watchers = core.watchers.size;
    await world.advance(20_000);
    expect([watchers, core.watchers.size]).toEqual([2, 1]);
  });

  test("do not stampede by the hundreds, and each acquires", async () => {
    const lease = await take(alice);
    const seen = { holding: 0, turns: 0 };
    const work = async (held: Lease) => {
      expect(++seen.holding).toBe(1);
      await new Promise<void>((resolve) => {
        world.timers.after(20, resolve);
      });
      seen.holding -= 1;
      seen.turns += 1;
      await held.release();
    };
    const crowd = Array.from({ length: 300 }, (_, index) => open(`w${index}`));
    for (const leases of crowd) {
      const waiting = leases.acquire(name, { ttl: ttlMs, wait: "10m" });
      void waiting.then(work);
    }
    await world.advance(500);
    void lease.release();
    while (seen.turns < 20) await world.advance(50);
    const before = { ...core.counts };
    const [turnsBefore, beganMs] = [seen.turns, world.clock.monotonicMs()];
    while (seen.turns < 120) await world.advance(50);
    const perTurn = (core.counts.grantLease - before.grantLease) / (seen.turns - turnsBefore);
    const turnMs = (world.clock.monotonicMs() - beganMs) / (seen.turns - turnsBefore);
    expect(perTurn).toBeLessThan(20);
    expect(turnMs).toBeLessThan(60);
  });
});
