import { beforeEach, describe, expect, test, vi } from "vitest";
import { watch } from "../../../../../test/support/scripted-provider.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import type { Lease, Leases, LeaseSet } from "../types.js";

let cluster: MemoryCluster;
let alice: Leases;
let bob: Leases;

beforeEach(() => {
  cluster = new MemoryCluster();
  alice = cluster.open("alice");
  bob = cluster.open("bob");
});

const pause = (ms: number) => new Promise<void>((resolve) => void cluster.world.timers.after(ms, resolve));

/** Rejects like the platform's functions that take a signal. */
const untilAborted = ({ signal }: Lease | LeaseSet) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError"))),
  );

describe("using", () => {
  test("acquires, runs, releases, and resolves with the value of the work", async () => {
    const token = await alice.using("a", async (lease) => {
      expect(await bob.tryAcquire("a")).toBeUndefined();
      lease.assertHeld();
      return lease.token;
    });
    const next = await bob.tryAcquire("a");
    expect(next!.token).toBeGreaterThan(token);
  });

  test("takes work that returns no promise, and options between the name and the work", async () => {
    expect(await alice.using("a", { ttl: "1s" }, ({ ttlMs }) => ttlMs)).toBe(1_000);
    expect(await alice.using(["b", "a"], { ttl: "1s" }, ({ resources }) => resources)).toEqual(["a", "b"]);
  });

  test("waits for the lease, and runs nothing when that times out", async () => {
    const lease = await bob.acquire("a");
    const work = vi.fn<() => void>();
    const late = watch(alice.using("a", { wait: "5s" }, work));
    await cluster.advance("6s");
    expect(late.error).toMatchObject({ code: "TIMEOUT" });
    await expect(alice.using("a", { wait: 0 }, work)).rejects.toMatchObject({ code: "LEASE_HELD" });
    expect(work).not.toHaveBeenCalled();
    await lease.release();
  });

  test("rejects with the loss when the lease was lost before the work returned: its value cannot be trusted", async () => {
    const used = watch(alice.using("a", () => pause(20_000).then(() => "value")));
    await cluster.advance("1s");
    cluster.lose("a");
    await cluster.advance("1s");
    expect(used.state).toBe("pending");
    await cluster.advance("30s");
    expect(used.error).toMatchObject({ code: "LEASE_LOST", reason: "clock-fault" });
  });

  test.each([["a"], [["a", "b"]]])("begins no work on %j when the lease is already lost", async (names) => {
    alice.on("acquired", ({ lease }) => cluster.lose(lease.resource));
    const work = vi.fn<() => void>();
    const used = watch(
      typeof names === "string" ? alice.using(names, undefined, work) : alice.using(names, work),
    );
    await cluster.advance("1s");
    expect(used.error).toMatchObject({ code: "LEASE_LOST", resource: "a" });
    expect(work).not.toHaveBeenCalled();
  });

  test("finds a loss that no timer has noticed, by the clock", async () => {
    const used = alice.using("a", () => cluster.world.block("1m"));
    await expect(used).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
  });

  test("rethrows the work's own error, also after a loss, and releases first", async () => {
    const bug = new Error("of the work");
    await expect(alice.using("a", () => Promise.reject(bug))).rejects.toBe(bug);
    expect(await bob.tryAcquire("a")).toBeDefined();
    const lost = alice.using("b", () => {
      cluster.lose("b");
      throw bug;
    });
    await expect(lost).rejects.toBe(bug);
  });

  test("reports an AbortError after a loss as the loss", async () => {
    const used = watch(alice.using("a", untilAborted));
    await cluster.advance("1s");
    cluster.lose("a");
    await cluster.advance(0);
    expect(used.error).toMatchObject({ code: "LEASE_LOST" });
  });

  test("resolves with the value of work that released the lease itself", async () =>
    expect(await alice.using("a", (lease) => lease.release().then(() => 7))).toBe(7));

  test.each([["a"], [["a", "b"]]])(
    "asks the work on %j to stop when its signal aborts, and holds the lease until it has",
    async (names) => {
      const controller = new AbortController();
      const seen: boolean[] = [];
      const work = async (held: Lease | LeaseSet) => {
        await untilAborted(held).catch(() => undefined);
        seen.push(held.remaining() > 0);
        await pause(30_000);
        seen.push(held.remaining() > 0);
        return "in order";
      };
      const options = { signal: controller.signal };
      const used = watch(
        typeof names === "string" ? alice.using(names, options, work) : alice.using(names, options, work),
      );
      await cluster.advance("1s");
      controller.abort();
      await cluster.advance("1m");
      expect(seen).toEqual([true, true]);
      expect(used.value).toBe("in order");
    },
  );

  test("gives work a second to stop when the participant is closed", async () => {
    const used = watch(
      alice.using(["a", "b"], async (held) => {
        await untilAborted(held).catch(() => undefined);
        await pause(500);
        held.assertHeld();
        return "stopped";
      }),
    );
    await cluster.advance(0);
    const closed = watch(alice.close());
    await cluster.advance("2s");
    expect([used.value, closed.state]).toEqual(["stopped", "fulfilled"]);
  });

  test("explains its arguments when there is no work", async () => {
    const using = alice.using.bind(alice) as unknown as (...args: unknown[]) => Promise<unknown>;
    for (const args of [["a"], ["a", {}], ["a", () => 1, {}]])
      await expect(using(...args)).rejects.toMatchObject({
        code: "INVALID_CONFIG",
        message: expect.stringContaining("using(name, options, work)") as string,
      });
  });
});
