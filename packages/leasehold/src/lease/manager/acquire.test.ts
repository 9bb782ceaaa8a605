import { beforeEach, describe, expect, test } from "vitest";
import { ScriptedProvider, TTL_MS, watch } from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import { waitersMax } from "../queue/local-queue.js";

let world: VirtualWorld;
let provider: ScriptedProvider;
let leases: LeaseManager;

beforeEach(() => {
  world = new VirtualWorld();
  provider = new ScriptedProvider(world.clock);
  leases = new LeaseManager(provider, world);
});

const code = (code: string) => expect.objectContaining({ code });

describe("arguments are checked before the provider is asked", () => {
  test.each(["", "a\nb", "x".repeat(513)])("the name %j is refused with INVALID_NAME", async (name) => {
    for (const call of [
      leases.acquire(name),
      leases.tryAcquire(name),
      leases.holder(name),
      leases.lead(name, async () => 1),
    ]) {
      await expect(call).rejects.toThrow(code("INVALID_NAME"));
    }
    expect(provider.attempts).toHaveLength(0);
  });

  test.each([
    { ttl: "soon" },
    { ttl: Number.NaN },
    { ttl: Infinity },
    { wait: -1 },
    { wait: "1 minute" },
    { maxHold: "1d" },
    { maxHold: 0 },
  ])("the duration %j is refused with INVALID_DURATION", async (options) => {
    await expect(leases.acquire("a", options)).rejects.toThrow(code("INVALID_DURATION"));
    expect(provider.attempts).toHaveLength(0);
  });

  test.each([0, 99, TTL_MS + 1, "1h"])(
    "the ttl %j is refused with both bounds in the message",
    async (ttl) => {
      await expect(leases.acquire("a", { ttl })).rejects.toThrow(
        expect.objectContaining({ code: "TTL_OUT_OF_RANGE", message: expect.stringMatching(/100ms to 12s/) }),
      );
    },
  );

  test.each([undefined, 100, TTL_MS])(
    "the ttl %j is accepted; the default is the provider's maximum",
    async (ttl) => {
      void leases.acquire("a", ttl === undefined ? {} : { ttl });
      expect(provider.attempts[0]!.request.ttlMs).toBe(ttl ?? TTL_MS);
    },
  );

  test("a list of names is told of acquireAll", async () => {
    const names = ["a", "b"] as unknown as string;
    await expect(leases.acquire(names)).rejects.toThrow("acquireAll takes several names");
  });

  test("an invalid timeout or prefix of a query is refused", async () => {
    await expect(leases.holder("a", { timeout: "x" })).rejects.toThrow(code("INVALID_DURATION"));
    await expect(leases.list("\n")).rejects.toThrow(code("INVALID_NAME"));
    expect((await leases.list()).map((hint) => hint.resource)).toEqual(["a", "b"]);
  });
});

describe("callers of one process", () => {
  test("wait in a first-in, first-out queue, one attempt at a time", async () => {
    const waiting = ["first", "second", "third"].map(() => watch(leases.acquire("a")));
    for (const each of waiting) {
      await world.settle();
      expect(provider.attempts).toHaveLength(1);
      provider.attempts.shift()!.grant();
      await world.settle();
      expect(each.state).toBe("fulfilled");
      expect(provider.attempts).toHaveLength(0);
      expect(waiting.filter((other) => other.state === "fulfilled" && other.value!.remaining() > 0)).toEqual([
        each,
      ]);
      void each.value!.release();
    }
    await world.settle();
    expect(world.pendingTimers).toBe(0);
  });

  test("cannot enter twice: a lease is not re-entrant", async () => {
    const first = leases.acquire("a");
    provider.attempts[0]!.grant();
    await using _lease = await first;
    const second = watch(leases.acquire("a", { wait: "2s" }));
    await world.advance("1999ms");
    expect(second.state).toBe("pending");
    await world.advance(1);
    expect(second.error).toEqual(code("TIMEOUT"));
    expect(provider.attempts).toHaveLength(1);
  });

  test("do not wait for a lease whose loss has gone unnoticed", async () => {
    const first = leases.acquire("a");
    provider.attempts[0]!.grant();
    await first;
    world.block(TTL_MS);
    void leases.acquire("a");
    await world.settle();
    expect(provider.attempts).toHaveLength(2);
  });

  test("do not wait for callers of other resources", () => {
    void leases.acquire("a");
    void leases.acquire("b");
    expect(provider.attempts.map((attempt) => attempt.request.resource)).toEqual(["a", "b"]);
  });

  test("are bounded in number", async () => {
    const waiting = Array.from({ length: waitersMax }, () => leases.acquire("a"));
    await expect(leases.acquire("a")).rejects.toThrow(code("TOO_MANY_WAITERS"));
    const closing = leases.close();
    provider.attempts[0]!.fail();
    await closing;
    const ends = await Promise.allSettled(waiting);
    expect(ends.every((end) => end.status === "rejected")).toBe(true);
    expect(world.pendingTimers).toBe(0);
  });
});

describe("while another holds the resource", () => {
  test("it tries again when the provider suggests it, as contended", async () => {
    const lease = watch(leases.acquire("a"));
    expect(provider.attempts[0]!.request.contended).toBe(false);
    provider.attempts[0]!.held(700);
    await world.advance(699);
    expect(provider.attempts).toHaveLength(1);
    await world.advance(1);
    expect(provider.attempts).toHaveLength(2);
    expect(provider.attempts[1]!.request.contended).toBe(true);
    provider.attempts[1]!.grant();
    await world.settle();
    expect(lease.state).toBe("fulfilled");
  });

  test("a hint wakes it", async () => {
    void leases.acquire("a");
    provider.attempts[0]!.held(700);
    await world.advance(10);
    provider.events!.hint("b");
    await world.settle();
    expect(provider.attempts).toHaveLength(1);
    provider.events!.hint("a");
    await world.settle();
    expect(provider.attempts).toHaveLength(2);
    expect(world.pendingTimers).toBe(0);
  });

  test("after a hint it asks as uncontended, until it is refused again", async () => {
    void leases.acquire("a");
    provider.attempts[0]!.held(700);
    await world.advance(10);
    provider.events!.hint("a");
    await world.settle();
    expect(provider.attempts[1]!.request.contended).toBe(false);
    provider.attempts[1]!.held(700);
    await world.advance(700);
    expect(provider.attempts[2]!.request.contended).toBe(true);
  });

  test("a hint during an attempt is not forgotten", async () => {
    void leases.acquire("a");
    provider.events!.hint("a");
    provider.attempts[0]!.held(700);
    await world.settle();
    expect(provider.attempts).toHaveLength(2);
    provider.attempts[1]!.held(700);
    await world.settle();
    expect(provider.attempts).toHaveLength(2);
  });

  test("a provider that suggests an immediate retry causes no busy loop", async () => {
    void leases.acquire("a");
    provider.attempts[0]!.held(0);
    await world.settle();
    expect(provider.attempts).toHaveLength(1);
    await world.advance(1);
    expect(provider.attempts).toHaveLength(2);
  });

  test("the deadline ends the wait with TIMEOUT, by default after a minute", async () => {
    const lease = watch(leases.acquire("a"));
    provider.attempts[0]!.held(3_600_000);
    await world.advance(59_999);
    expect(lease.state).toBe("pending");
    await world.advance(1);
    expect(lease.error).toEqual(code("TIMEOUT"));
    expect(String(lease.error)).toContain("waited 1m");
    expect(world.pendingTimers).toBe(0);
  });

  test("wait: Infinity waits on", async () => {
    const lease = watch(leases.acquire("a", { wait: Infinity }));
    provider.attempts[0]!.held(7_200_000);
    await world.advance("2h");
    provider.attempts[1]!.grant();
    await world.settle();
    expect(lease.state).toBe("fulfilled");
  });

  test("wait: 0 does not wait (LEASE_HELD)", async () => {
    const remote = watch(leases.acquire("a", { wait: 0 }));
    provider.attempts[0]!.held();
    await world.settle();
    expect(remote.error).toEqual(code("LEASE_HELD"));
    void leases.acquire("b");
    provider.attempts[1]!.grant();
    await world.settle();
    await expect(leases.acquire("b", { wait: 0 })).rejects.toThrow(code("LEASE_HELD"));
    expect(provider.attempts).toHaveLength(2);
  });
});

describe("without an answer", () => {
  test("it tries again after a random, capped pause, and at its deadline throws the last error", async () => {
    const lease = watch(leases.acquire("a", { wait: "30s" }));
    const startsMs: number[] = [];
    while (lease.state === "pending") {
      if (provider.attempts.length > startsMs.length) {
        startsMs.push(world.clock.monotonicMs());
        provider.attempts.at(-1)!.fail();
      }
      await world.advance(1);
    }
    expect(lease.error).toEqual(code("NO_QUORUM"));
    expect(world.clock.monotonicMs()).toBeCloseTo(30_000, 0);
    const gapsMs = startsMs.slice(1).map((startMs, index) => startMs - startsMs[index]!);
    expect(Math.max(...gapsMs)).toBeLessThanOrEqual(2_001);
    expect(new Set(gapsMs).size).toBeGreaterThan(5);
    expect(startsMs.length).toBeGreaterThan(15);
    expect(startsMs.length).toBeLessThan(200);
    expect(world.pendingTimers).toBe(0);
  });

  test("a permanent error is thrown at once", async () => {
    const lease = watch(leases.acquire("a"));
    provider.attempts[0]!.fail("CONFIG_MISMATCH");
    await world.settle();
    expect(lease.error).toEqual(code("CONFIG_MISMATCH"));
  });

  test.each([
    ["5s", 5_000],
    ["10ms", 100],
    ["1h", TTL_MS],
    [Infinity, TTL_MS],
  ])("an attempt of a caller that waits %s may take %d ms", (wait, timeoutMs) => {
    void leases.acquire("a", { wait });
    expect(provider.attempts[0]!.request.timeoutMs).toBe(timeoutMs);
  });

  test("an attempt that throws frees the turn for the next", async () => {
    const first = watch(leases.acquire("a"));
    const second = watch(leases.acquire("a"));
    provider.attempts[0]!.answer(Promise.reject(new Error("broken")) as never);
    await world.settle();
    expect(first.error).toEqual(new Error("broken"));
    provider.attempts[1]!.grant();
    await world.settle();
    expect(second.state).toBe("fulfilled");
  });

  test("a grant that had expired on arrival is released and not handed out", async () => {
    const lease = watch(leases.acquire("a"));
    const grant = provider.attempts[0]!.grant();
    world.block(TTL_MS);
    await world.settle();
    expect(lease.state).toBe("pending");
    expect(provider.releases.map((release) => release.grant)).toEqual([grant]);
    await world.advance("2s");
    expect(provider.attempts).toHaveLength(2);
  });
});

describe("a signal", () => {
  const reason = new Error("enough");

  test("that has already aborted ends the call before it begins", async () => {
    await expect(leases.acquire("a", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(leases.tryAcquire("a", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(provider.attempts).toHaveLength(0);
  });

  test("ends a wait in the queue at once, and the queue continues without it", async () => {
    const first = watch(leases.acquire("a"));
    const controller = new AbortController();
    const second = watch(leases.acquire("a", { signal: controller.signal }));
    const third = watch(leases.acquire("a"));
    await world.settle();
    controller.abort(reason);
    await world.settle();
    expect(second.error).toBe(reason);
    provider.attempts[0]!.grant();
    await world.settle();
    await first.value!.release();
    await world.settle();
    provider.attempts[1]!.grant();
    await world.settle();
    expect(third.state).toBe("fulfilled");
  });

  test("ends the sleep of the first in the queue", async () => {
    const controller = new AbortController();
    const lease = watch(leases.acquire("a", { signal: controller.signal }));
    provider.attempts[0]!.held(5_000);
    await world.advance(10);
    controller.abort(reason);
    await world.settle();
    expect(lease.error).toBe(reason);
    expect(world.pendingTimers).toBe(0);
  });

  test("aborts the attempt, and the call rejects when the attempt has been withdrawn", async () => {
    const controller = new AbortController();
    const lease = watch(leases.acquire("a", { signal: controller.signal }));
    controller.abort(reason);
    await world.settle();
    expect(provider.attempts[0]!.cancellation!.cancelled).toBe(true);
    expect(lease.state).toBe("pending");
    provider.attempts[0]!.fail();
    await world.settle();
    expect(lease.error).toBe(reason);
  });

  test.each(["acquire", "tryAcquire"] as const)(
    "too late for %s: the grant is released and never handed out",
    async (method) => {
      const controller = new AbortController();
      const lease = watch(leases[method]("a", { signal: controller.signal }));
      const next = watch(leases.acquire("a"));
      provider.holdReleases = true;
      const grant = provider.attempts[0]!.grant();
      controller.abort(reason);
      await world.settle();
      expect(provider.releases[0]!.grant).toBe(grant);
      expect(lease.state).toBe("pending");
      expect(provider.attempts).toHaveLength(1);
      provider.releases[0]!.answer();
      await world.settle();
      expect(lease.error).toBe(reason);
      expect(provider.attempts).toHaveLength(2);
      expect(next.state).toBe("pending");
    },
  );

  test("that aborts after the lease was handed out has no effect on it", async () => {
    const controller = new AbortController();
    const lease = watch(leases.acquire("a", { signal: controller.signal }));
    provider.attempts[0]!.grant();
    await world.settle();
    controller.abort(reason);
    await world.settle();
    expect(lease.value!.remaining()).toBe(TTL_MS);
  });
});
