import { beforeEach, expect, test } from "vitest";
import { ScriptedProvider, watch } from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import type { Lease } from "../types.js";

let world: VirtualWorld;
let provider: ScriptedProvider;
let leases: LeaseManager;

beforeEach(() => {
  world = new VirtualWorld();
  provider = new ScriptedProvider(world.clock);
  leases = new LeaseManager(provider, world);
});

const closedError = expect.objectContaining({ code: "CLOSED" });

async function take(resource: string): Promise<Lease> {
  const lease = leases.acquire(resource);
  provider.attempts.pop()!.grant();
  return lease;
}

test("close releases what is held, all at the same time, and then closes the provider", async () => {
  const held = [await take("a"), await take("b"), await take("c")];
  provider.holdReleases = true;
  const closed = watch(leases.close());
  for (const lease of held) {
    expect(lease.remaining()).toBe(0);
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "closed" });
  }
  await world.settle();
  expect(provider.releases).toHaveLength(3);
  expect(provider.isClosed).toBe(false);
  for (const release of provider.releases) release.answer();
  await world.settle();
  expect(closed.state).toBe("fulfilled");
  expect(provider.isClosed).toBe(true);
  expect(world.pendingTimers).toBe(0);
});

test("close waits no longer than two seconds for pending releases", async () => {
  const lease = await take("a");
  void lease.renew().catch(() => undefined);
  await take("b");
  provider.holdReleases = true;
  const closed = watch(leases.close());
  await world.advance(1_999);
  expect(closed.state).toBe("pending");
  await world.advance(1);
  expect(closed.state).toBe("fulfilled");
  expect(provider.isClosed).toBe(true);
  expect(world.pendingTimers).toBe(0);
});

test("close waits no longer than a second for a provider that does not close, and reports one that fails to", async () => {
  provider.close = () => new Promise(() => undefined);
  const closed = watch(leases.close());
  await world.advance(999);
  expect(closed.state).toBe("pending");
  await world.advance(1);
  expect(closed.state).toBe("fulfilled");
  const other = new ScriptedProvider(world.clock);
  other.close = () => Promise.reject(new Error("no"));
  await expect(new LeaseManager(other, world).close()).rejects.toThrow("no");
  expect(world.pendingTimers).toBe(0);
});

test("close ends all waits with CLOSED: in the queue, asleep, and during an attempt", async () => {
  await take("a");
  const queued = watch(leases.acquire("a"));
  const asleep = watch(leases.acquire("b"));
  provider.attempts.pop()!.held(5_000);
  await world.settle();
  const asking = watch(leases.acquire("c"));
  const trying = watch(leases.tryAcquire("c"));
  const closed = watch(leases.close());
  await world.settle();
  expect([queued.error, asleep.error, trying.error]).toEqual([closedError, closedError, closedError]);
  expect(provider.attempts[0]!.cancellation!.cancelled).toBe(true);
  expect(closed.state).toBe("pending");
  const grant = provider.attempts[0]!.grant();
  await world.settle();
  expect(asking.error).toEqual(closedError);
  expect(provider.releases.at(-1)!.grant).toBe(grant);
  expect(closed.state).toBe("fulfilled");
  expect(world.pendingTimers).toBe(0);
});

test("close is idempotent, and every later call is refused with CLOSED", async () => {
  const first = leases.close();
  expect(leases.close()).toBe(first);
  await first;
  await leases[Symbol.asyncDispose]();
  for (const call of [
    leases.acquire("a"),
    leases.tryAcquire("a"),
    leases.holder("a"),
    leases.list(),
    leases.lead("a", async () => 1),
  ]) {
    await expect(call).rejects.toThrow(closedError);
  }
  expect(provider.attempts).toHaveLength(0);
  expect(leases.self).toBe("me.1");
  expect(leases.guarantees.ttlMaxMs).toBe(12_000);
});

test("a caller that calls again when it is notified of the end is refused, and closes no second time", async () => {
  const lease = await take("a");
  const heard: unknown[] = [];
  lease.signal.addEventListener("abort", () => {
    heard.push(watch(leases.acquire("b", { wait: Infinity })), watch(leases.tryAcquire("c")));
    expect(leases.close()).toBe(leases.close());
  });
  const closed = watch(leases.close());
  await world.settle();
  expect(heard).toMatchObject([{ error: closedError }, { error: closedError }]);
  expect([provider.attempts.length, closed.state]).toEqual([0, "fulfilled"]);
});
