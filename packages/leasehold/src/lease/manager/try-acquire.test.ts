import { beforeEach, expect, test } from "vitest";
import { ScriptedProvider, TTL_MS, watch } from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";

let world: VirtualWorld;
let provider: ScriptedProvider;
let leases: LeaseManager;

beforeEach(() => {
  world = new VirtualWorld();
  provider = new ScriptedProvider(world.clock);
  leases = new LeaseManager(provider, world);
});

test("tryAcquire takes a free resource", async () => {
  const lease = watch(leases.tryAcquire("a"));
  expect(provider.attempts[0]!.request.timeoutMs).toBe(TTL_MS);
  provider.attempts[0]!.grant();
  await world.settle();
  expect(lease.value!.token).toBe(1n);
});

test("tryAcquire gives undefined when another participant has the resource", async () => {
  const lease = watch(leases.tryAcquire("a"));
  provider.attempts[0]!.held();
  await world.settle();
  expect(lease).toMatchObject({ state: "fulfilled", value: undefined });
  expect(world.pendingTimers).toBe(0);
});

test("tryAcquire gives undefined without a request when another caller of this process has the resource", async () => {
  void leases.acquire("a");
  provider.attempts[0]!.grant();
  await world.settle();
  expect(await leases.tryAcquire("a")).toBeUndefined();
  expect(provider.attempts).toHaveLength(1);
});

test("tryAcquire throws NO_QUORUM when there is no answer", async () => {
  const lease = watch(leases.tryAcquire("a"));
  provider.attempts[0]!.fail();
  await world.settle();
  expect(lease.error).toMatchObject({ code: "NO_QUORUM" });
});

test.each(["acquire", "tryAcquire"] as const)(
  "tryAcquire shares the answer of a concurrent %s, held or granted",
  async (method) => {
    for (const answer of ["held", "grant"] as const) {
      const resource = `resource-${answer}`;
      void leases[method](resource);
      const tries = [watch(leases.tryAcquire(resource)), watch(leases.tryAcquire(resource))];
      await world.settle();
      expect(tries.map((each) => each.state)).toEqual(["pending", "pending"]);
      provider.attempts.pop()![answer]();
      await world.settle();
      for (const each of tries) expect(each).toMatchObject({ state: "fulfilled", value: undefined });
      expect(provider.attempts).toHaveLength(0);
    }
  },
);

test.each(["acquire", "tryAcquire"] as const)(
  "tryAcquire makes its own attempt when the concurrent %s fails",
  async (method) => {
    void watch<unknown>(leases[method]("a"));
    const mine = watch(leases.tryAcquire("a"));
    provider.attempts[0]!.fail();
    await world.settle();
    expect(provider.attempts).toHaveLength(2);
    provider.attempts[1]!.grant();
    await world.settle();
    expect(mine.value!.remaining()).toBe(TTL_MS);
  },
);

test("tryAcquire makes its own attempt when the concurrent caller gives up", async () => {
  const controller = new AbortController();
  void watch(leases.acquire("a", { signal: controller.signal }));
  const mine = watch(leases.tryAcquire("a"));
  controller.abort();
  provider.attempts[0]!.grant();
  await world.settle();
  expect(provider.releases).toHaveLength(1);
  provider.attempts[1]!.grant();
  await world.settle();
  expect(mine.state).toBe("fulfilled");
});

test("tryAcquire does not wait behind a waiter that sleeps until another's lease is over", async () => {
  const waiter = watch(leases.acquire("a", { wait: Infinity }));
  provider.attempts[0]!.held(1_000);
  await world.settle();
  expect(await leases.tryAcquire("a")).toBeUndefined();
  await world.advance(1_000);
  provider.attempts[1]!.grant();
  await world.settle();
  expect(waiter.state).toBe("fulfilled");
});

test("tryAcquire does not wait behind a waiter that sleeps after an unanswered attempt", async () => {
  const waiter = watch(leases.acquire("a", { wait: Infinity }));
  provider.attempts[0]!.fail();
  await world.settle();
  const mine = watch(leases.tryAcquire("a"));
  expect(provider.attempts).toHaveLength(2);
  provider.attempts[1]!.grant();
  await world.advance("3s");
  expect(provider.attempts).toHaveLength(2);
  void mine.value!.release();
  await world.settle();
  provider.attempts[2]!.grant();
  await world.settle();
  expect(waiter.state).toBe("fulfilled");
});

test("tries and waiters do not starve each other while there are no answers", async () => {
  void watch(leases.acquire("a", { wait: Infinity, ttl: 1_000 }));
  const tries = [];
  for (let round = 0; round < 20; round += 1) {
    tries.push(watch(leases.tryAcquire("a", { ttl: 2_000 })), watch(leases.tryAcquire("a", { ttl: 2_000 })));
    provider.attempts.at(-1)!.fail();
    await world.advance(2_000);
  }
  const byWaiter = provider.attempts.filter((attempt) => attempt.request.ttlMs === 1_000).length;
  expect(byWaiter).toBeGreaterThan(5);
  expect(tries.filter((each) => each.state === "rejected").length).toBeGreaterThan(5);
});

test("tryAcquire waits for a release in flight and then takes the resource", async () => {
  const first = watch(leases.acquire("a"));
  provider.attempts[0]!.grant();
  await world.settle();
  provider.holdReleases = true;
  void first.value!.release();
  const mine = watch(leases.tryAcquire("a"));
  await world.settle();
  expect(mine.state).toBe("pending");
  provider.releases[0]!.answer();
  await world.settle();
  provider.attempts[1]!.grant();
  await world.settle();
  expect(mine.state).toBe("fulfilled");
});

test("a lease of this process whose loss has gone unnoticed blocks nobody", async () => {
  const first = watch(leases.acquire("a"));
  provider.attempts[0]!.grant();
  await world.settle();
  world.block(TTL_MS);
  const mine = watch(leases.tryAcquire("a"));
  await world.settle();
  provider.attempts[1]!.grant();
  await world.settle();
  expect(mine.value!.token).toBe(2n);
  expect(first.value!.remaining()).toBe(0);
});

test("however many try while nobody answers, each waits for two attempts at most", async () => {
  const tries = Array.from({ length: 20 }, () => watch(leases.tryAcquire("a")));
  for (const settled of [1, 20]) {
    expect(provider.attempts).toHaveLength(1);
    provider.attempts.pop()!.fail();
    await world.settle();
    expect(tries.filter(({ state }) => state === "rejected")).toHaveLength(settled);
  }
  expect(tries.at(-1)!.error).toMatchObject({ code: "NO_QUORUM" });
});
