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

async function take(resource: string): Promise<Lease> {
  const lease = leases.acquire(resource);
  await world.settle();
  provider.attempts.pop()!.grant();
  return lease;
}

test("a detached lease sends the provider nothing until it has expired, and leaves no timer", async () => {
  const lease = await take("a");
  const ticket = watch(lease.detach());
  await world.settle();
  expect(ticket.value).toEqual({
    resource: "a",
    holder: leases.self,
    token: lease.token.toString(),
    remainingMs: lease.ttlMs,
  });
  expect(world.pendingTimers).toBe(0);
  await expect(leases.tryAcquire("a")).resolves.toBeUndefined();
  await expect(leases.acquire("a", { wait: 0 })).rejects.toMatchObject({ code: "LEASE_HELD" });
  const next = watch(leases.acquire("a"));
  await world.advance(lease.ttlMs - 1);
  expect([provider.attempts.length, provider.releases.length]).toEqual([0, 0]);
  await world.advance(2);
  expect(provider.attempts).toHaveLength(1);
  provider.attempts.pop()!.grant();
  await world.settle();
  expect(next.state).toBe("fulfilled");
});

test("detach is a loss for checks and a release for listeners, and is refused when the lease is not held", async () => {
  const lease = await take("a");
  const emitted: string[] = [];
  leases.on("lost", () => emitted.push("lost"));
  leases.on("released", () => emitted.push("released"));
  const { signal } = lease;
  const detached = lease.detach();
  expect(signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "detached" });
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: "detached" }));
  await detached;
  await expect(lease.detach()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "detached" });
  expect(emitted).toEqual(["released"]);
});

test("neither release nor close releases a detached lease", async () => {
  const lease = await take("a");
  await lease.detach();
  await lease.release();
  await lease[Symbol.asyncDispose]();
  const other = await take("b");
  const late = other.detach();
  await leases.close();
  await late;
  expect(provider.releases).toHaveLength(0);
  expect(world.pendingTimers).toBe(0);
});

test("work that detaches its lease has succeeded", async () => {
  const working = leases.using("a", async (lease) => (await lease.detach()).token);
  await world.settle();
  provider.attempts.pop()!.grant();
  await expect(working).resolves.toMatch(/^\d+$/);
  expect(provider.releases).toHaveLength(0);
});

test("expired leases are not kept", async () => {
  for (let index = 0; index < 64; index += 1) await (await take(`n/${index}`)).detach();
  expect(provider.releases).toHaveLength(0);
  await world.advance("1h");
  for (let index = 0; index < 64; index += 1) await (await take(`m/${index}`)).detach();
  expect(provider.releases.length).toBe(64);
});
