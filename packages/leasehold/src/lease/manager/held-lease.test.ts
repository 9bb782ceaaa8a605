import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  type ScriptedGrant,
  ScriptedProvider,
  TTL_MS,
  watch,
} from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseLostError } from "../errors.js";
import { LeaseManager } from "./lease-manager.js";
import type { Lease, TryAcquireOptions } from "../types.js";

let world: VirtualWorld;
let provider: ScriptedProvider;
let leases: LeaseManager;
let grant: ScriptedGrant;

beforeEach(() => {
  world = new VirtualWorld();
  provider = new ScriptedProvider(world.clock);
  leases = new LeaseManager(provider, world);
});

async function take(options: TryAcquireOptions = {}): Promise<Lease> {
  const lease = leases.acquire("a", options);
  grant = provider.attempts.pop()!.grant();
  return lease;
}

const lostBy = (reason: string) => expect.objectContaining({ code: "LEASE_LOST", resource: "a", reason });

describe("the facts of a lease", () => {
  test("remaining() is the provider's present answer, and assertHeld() follows it", async () => {
    const lease = await take({ autoRenew: false });
    expect(lease.remaining()).toBe(TTL_MS);
    world.block(TTL_MS - 500);
    expect(lease.remaining()).toBe(500);
    expect(() => lease.assertHeld()).not.toThrow();
    expect(() => lease.assertHeld(500)).not.toThrow();
    expect(() => lease.assertHeld(501)).toThrow(/500ms remain, 501ms were asked for/);
    expect(() => lease.assertHeld(Infinity)).toThrow(lostBy("expired"));
    expect(lease.signal.aborted).toBe(false);
  });

  test.each(["5", "5s", "", null, -1, -Infinity, Number.NaN, 5n, {}, true])(
    "assertHeld(%s) is a wrong argument, whether the lease is held or lost",
    async (wrong) => {
      const lease = await take();
      const wrongArgument = expect.objectContaining({ code: "INVALID_DURATION" });
      expect(() => lease.assertHeld(wrong as number)).toThrow(wrongArgument);
      await lease.release();
      expect(() => lease.assertHeld(wrong as number)).toThrow(wrongArgument);
    },
  );

  test("the lease is plain data in JSON, with its token as text", async () => {
    const lease = await take({ ttl: "5s" });
    expect(JSON.parse(JSON.stringify(lease))).toEqual({
      resource: "a",
      holder: "me.1",
      token: "1",
      remainingMs: 5_000,
    });
    expect(lease.ttlMs).toBe(5_000);
  });
});

test("an error of a loss that a call finds has a stack; one that the alarm finds has none", async () => {
  const { signal } = await take({ autoRenew: false });
  await world.advance(TTL_MS + 10);
  expect((signal.reason as Error).stack).not.toContain(" at ");
  const next = await take({ autoRenew: false });
  world.block(TTL_MS + 10);
  const error = caught(() => next.assertHeld());
  expect(error).toBeInstanceOf(LeaseLostError);
  expect(error.stack).toContain("held-lease.test.ts");
});

function caught(call: () => void): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

test("a remainder smaller than the clock's resolution is not checked over and over in one instant", async () => {
  await take({ autoRenew: false });
  let looks = 0;
  vi.spyOn(grant, "remainingMs").mockImplementation(() => {
    looks += 1;
    // Without this the test would hang.
    if (looks > 100) throw new Error("endless checks");
    return 1e-13;
  });
  await world.advance(TTL_MS + 10);
  expect(looks).toBeGreaterThan(5);
  expect(looks).toBeLessThan(50);
});

describe("renewal", () => {
  test("is sent when a third of the TTL has passed since the last request", async () => {
    const lease = await take();
    await world.advance(TTL_MS / 3 - 1);
    expect(provider.renewals).toHaveLength(0);
    await world.advance(1);
    expect(provider.renewals).toHaveLength(1);
    provider.renewals[0]!.answer(true);
    await world.settle();
    expect(lease.remaining()).toBe(TTL_MS);
    await world.advance(TTL_MS / 3 - 1);
    expect(provider.renewals).toHaveLength(1);
    await world.advance(1);
    expect(provider.renewals).toHaveLength(2);
    expect(provider.renewals[1]!.sentMs).toBe((2 * TTL_MS) / 3);
  });

  test.each([
    ["whose answer took a second", 0, 1_000],
    ["that was asked for a second late", 1_000, 0],
  ])(
    "%s is followed by one two seconds earlier, and a quick one by one at its third",
    async (_, lateMs, tookMs) => {
      await take();
      await world.advance(TTL_MS / 3 - 1);
      world.block(1 + lateMs);
      await world.advance(0);
      await world.advance(tookMs);
      provider.renewals[0]!.answer(true);
      await world.settle();
      await world.advance(TTL_MS / 3 - 2_000 - tookMs);
      const [first, second] = provider.renewals.map(({ sentMs }) => sentMs);
      expect(second! - first!).toBe(TTL_MS / 3 - 2_000);
      provider.renewals[1]!.answer(true);
      await world.settle();
      await world.advance(TTL_MS / 3 - 1);
      expect(provider.renewals).toHaveLength(2);
      await world.advance(1);
      expect(provider.renewals).toHaveLength(3);
    },
  );

  test("that always takes long is not asked for without a pause", async () => {
    await take();
    for (let ms = 0; ms < TTL_MS; ms += 10) {
      await world.advance(10);
      const { sentMs, answer } = provider.renewals.at(-1) ?? { sentMs: Infinity, answer: undefined };
      if (world.clock.monotonicMs() - sentMs >= 3_000) answer?.(true);
    }
    // The first after a third of the ttl, then one a twelfth of the ttl after each answer.
    expect(provider.renewals.map(({ sentMs }) => sentMs)).toEqual([4_000, 8_000, 12_000]);
  });

  test("is retried sooner after a failure, but not without a pause, until the lease has expired", async () => {
    const lease = await take();
    for (let ms = 0; ms < TTL_MS; ms += 10) {
      await world.advance(10);
      provider.renewals.at(-1)?.answer(false);
    }
    expect(lease.remaining()).toBe(0);
    const sentMs = provider.renewals.map((renewal) => renewal.sentMs);
    expect(sentMs[0]).toBe(4_000);
    expect(sentMs[1]).toBe(5_000);
    expect(sentMs).toHaveLength(8);
    expect(world.pendingTimers).toBe(0);
  });

  test("that was slow to fail is retried without a further pause", async () => {
    await take();
    await world.advance(TTL_MS / 3);
    await world.advance(2_000);
    provider.renewals[0]!.answer(false);
    await world.advance(1);
    expect(provider.renewals).toHaveLength(2);
  });

  test("that throws counts as failed", async () => {
    const lease = await take();
    const renewed = watch(lease.renew());
    const cause = new Error("socket");
    provider.renewals[0]!.fail(cause);
    await world.settle();
    expect(renewed.error).toMatchObject({ code: "NO_QUORUM", cause });
    await world.advance(1_000);
    expect(provider.renewals).toHaveLength(2);
  });

  test("by a provider that extends by little causes no busy loop", async () => {
    await take();
    for (let ms = 0; ms < TTL_MS; ms += 100) {
      await world.advance(100);
      const renewal = provider.renewals.at(-1);
      if (renewal !== undefined) renewal.grant.endMs = world.clock.monotonicMs() + 500;
      renewal?.answer(false);
    }
    expect(provider.renewals.length).toBeLessThan(20);
  });

  test("by hand extends the lease; concurrent calls share one request", async () => {
    const lease = await take({ autoRenew: false });
    world.block(TTL_MS / 2);
    const calls = [watch(lease.renew()), watch(lease.renew()), watch(lease.renew())];
    expect(provider.renewals).toHaveLength(1);
    provider.renewals[0]!.answer(true);
    await world.settle();
    expect(calls.map((call) => call.state)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect(lease.remaining()).toBe(TTL_MS);
    void lease.renew();
    expect(provider.renewals).toHaveLength(2);
  });

  test("by hand throws NO_QUORUM while the lease is still valid, LEASE_LOST when it has expired", async () => {
    const lease = await take({ autoRenew: false });
    const failed = watch(lease.renew());
    provider.renewals[0]!.answer(false);
    await world.settle();
    expect(failed.error).toMatchObject({
      code: "NO_QUORUM",
      message: expect.stringContaining("runs for 12s more"),
    });
    const late = watch(lease.renew());
    await world.advance(TTL_MS);
    provider.renewals[1]!.answer(false);
    await world.settle();
    expect(late.error).toEqual(lostBy("expired"));
    await expect(lease.renew()).rejects.toThrow(lostBy("expired"));
    expect(provider.renewals).toHaveLength(2);
  });

  test("does not happen with autoRenew: false, nor after the release", async () => {
    await take({ autoRenew: false });
    await world.advance(TTL_MS);
    const lease = await take();
    await lease.release();
    await world.advance(TTL_MS);
    expect(provider.renewals).toHaveLength(0);
    expect(world.pendingTimers).toBe(0);
  });
});

describe("loss", () => {
  test("is noticed by the timer: the signal aborts with the reason, the provider is notified", async () => {
    const lease = await take({ autoRenew: false });
    const heard = vi.fn<() => void>();
    lease.signal.addEventListener("abort", heard);
    await world.advance(TTL_MS - 1);
    expect(heard).not.toHaveBeenCalled();
    await world.advance(1);
    expect(heard).toHaveBeenCalledTimes(1);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toEqual(lostBy("expired"));
    expect(provider.releases.map((release) => release.grant)).toEqual([grant]);
    expect(world.pendingTimers).toBe(0);
  });

  test.each([
    ["remaining()", (lease: Lease) => lease.remaining() === 0],
    ["the signal", (lease: Lease) => lease.signal.aborted],
    ["toJSON()", (lease: Lease) => lease.toJSON().remainingMs === 0],
  ])("is noticed by the first check of %s after a blocked event loop", async (_, isLost) => {
    const lease = await take();
    world.block(TTL_MS - 1);
    expect(isLost(lease)).toBe(false);
    world.block(1);
    expect(isLost(lease)).toBe(true);
  });

  test("is noticed by the first assertHeld() and renew() after a blocked event loop, before any timer ran", async () => {
    const lease = await take();
    world.block(TTL_MS);
    expect(() => lease.assertHeld()).toThrow(lostBy("expired"));
    await expect(lease.renew()).rejects.toThrow(lostBy("expired"));
    expect(provider.renewals).toHaveLength(0);
  });

  test("an overdue timer that runs after the block renews nothing", async () => {
    await take();
    world.block(TTL_MS);
    await world.advance(0);
    expect(provider.renewals).toHaveLength(0);
  });

  test("is final, whatever the provider answers later", async () => {
    const lease = await take({ autoRenew: false });
    world.block(TTL_MS);
    expect(lease.remaining()).toBe(0);
    grant.endMs = Infinity;
    expect(lease.remaining()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(lostBy("expired"));
    expect(lease.signal.aborted).toBe(true);
  });

  test("reported by the provider counts with its reason", async () => {
    const lease = await take();
    const error = new LeaseLostError("a", "clock-fault");
    provider.events!.lost(grant, error);
    expect(lease.remaining()).toBe(0);
    expect(lease.signal.reason).toBe(error);
    expect(() => lease.assertHeld()).toThrow(error);
    await world.settle();
    expect(provider.releases).toHaveLength(1);
    expect(world.pendingTimers).toBe(0);
  });

  test("reported by the provider for an unknown grant has no effect", async () => {
    const lease = await take();
    await lease.release();
    expect(() => provider.events!.lost(grant, new LeaseLostError("a", "expired"))).not.toThrow();
    expect(lease.signal.reason).toEqual(lostBy("released"));
  });
});

describe("maxHold", () => {
  test("caps remaining(), ends the tenure and releases the resource, whatever the renewals achieve", async () => {
    const lease = await take({ maxHold: "21s" });
    while (world.clock.monotonicMs() < 20_500) {
      await world.advance(500);
      provider.renewals.at(-1)?.answer(true);
    }
    expect(lease.remaining()).toBe(500);
    expect(grant.remainingMs()).toBeGreaterThan(500);
    await world.advance(500);
    expect(lease.signal.reason).toEqual(lostBy("max-hold"));
    expect(provider.releases).toHaveLength(1);
    expect(world.pendingTimers).toBe(0);
  });

  test("longer than the lease is not reached: the lease is renewed no more", async () => {
    await take({ maxHold: "5s" });
    await world.advance("5s");
    expect(provider.renewals).toHaveLength(0);
    expect(provider.releases).toHaveLength(1);
  });
});

describe("release", () => {
  test("first ends the lease, then notifies the provider, then lets the next caller try", async () => {
    const lease = await take();
    const next = watch(leases.acquire("a"));
    provider.holdReleases = true;
    const order: string[] = [];
    lease.signal.addEventListener("abort", () =>
      order.push(`signal, ${lease.remaining()} left, ${provider.releases.length} released`),
    );
    const released = watch(lease.release());
    expect(lease.remaining()).toBe(0);
    expect(order).toEqual(["signal, 0 left, 0 released"]);
    await world.settle();
    expect(provider.releases).toHaveLength(1);
    expect([released.state, next.state, provider.attempts.length]).toEqual(["pending", "pending", 0]);
    provider.releases[0]!.answer();
    await world.settle();
    expect(released.state).toBe("fulfilled");
    expect(provider.attempts).toHaveLength(1);
  });

  test("is idempotent; after it the reason is released", async () => {
    const lease = await take();
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    expect(provider.releases).toHaveLength(1);
    expect(() => lease.assertHeld()).toThrow(lostBy("released"));
    expect(lease.signal.reason).toEqual(lostBy("released"));
  });

  test("never throws because the lease was lost or the provider failed", async () => {
    const lease = await take({ autoRenew: false });
    world.block(TTL_MS);
    await lease.release();
    expect(lease.signal.reason).toEqual(lostBy("expired"));
    const other = await take();
    provider.release = () => Promise.reject(new Error("unreachable"));
    await other.release();
    await take();
  });

  test("waits for a renewal in flight: one request at a time", async () => {
    const lease = await take();
    const renewed = watch(lease.renew());
    const released = watch(lease.release());
    await world.settle();
    expect(provider.releases).toHaveLength(0);
    provider.renewals[0]!.answer(true);
    await world.settle();
    expect(provider.releases).toHaveLength(1);
    expect(released.state).toBe("fulfilled");
    expect(renewed.error).toEqual(lostBy("released"));
    expect(world.pendingTimers).toBe(0);
  });

  test("can be called by a listener of the signal", async () => {
    const lease = await take({ autoRenew: false });
    let released: Promise<void> | undefined;
    lease.signal.addEventListener("abort", () => (released = lease.release()));
    await world.advance(TTL_MS);
    await released;
    expect(provider.releases).toHaveLength(1);
  });

  test("happens at the end of an `await using` block", async () => {
    {
      await using lease = await take();
      lease.assertHeld();
    }
    expect(provider.releases).toHaveLength(1);
  });
});
