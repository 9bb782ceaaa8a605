import { beforeEach, describe, expect, test, vi } from "vitest";
import { watch } from "../../../../../test/support/scripted-provider.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import { LeaseLostError } from "../errors.js";
import type { Lease, Leases } from "../types.js";

let cluster: MemoryCluster;
let alice: Leases;
let bob: Leases;

beforeEach(() => {
  cluster = new MemoryCluster();
  alice = cluster.open("alice");
  bob = cluster.open("bob");
});

const forever = new Promise<never>(() => {});

/** Work that ends when the test says so. */
function work() {
  const terms: { lease: Lease; finish: (value: string) => void; fail: (error: unknown) => void }[] = [];
  const run = (lease: Lease) =>
    new Promise<string>((finish, fail) => {
      terms.push({ lease, finish, fail });
    });
  return { terms, run };
}

test("lead begins no work under a lease that is already lost, and campaigns on", async () => {
  const stop = alice.on("acquired", ({ lease }) => {
    cluster.lose(lease.resource);
    stop();
  });
  const held: boolean[] = [];
  expect(await alice.lead("a", async (lease) => held.push(lease.remaining() > 0))).toBe(1);
  expect(held).toEqual([true]);
});

test("lead runs the work while the lease is held, over many renewals, and resolves with its value", async () => {
  const { terms, run } = work();
  const led = watch(alice.lead("a", run));
  await cluster.advance("5m");
  expect(terms).toHaveLength(1);
  terms[0]!.lease.assertHeld();
  terms[0]!.finish("done");
  await cluster.advance(0);
  expect(led.value).toBe("done");
  expect(() => terms[0]!.lease.assertHeld()).toThrow(expect.objectContaining({ reason: "released" }));
  expect(cluster.world.pendingTimers).toBe(0);
});

test("lead waits without a time limit", async () => {
  const first = await bob.acquire("a");
  const { terms, run } = work();
  void alice.lead("a", run);
  await cluster.advance("2h");
  expect(terms).toHaveLength(0);
  await first.release();
  await cluster.advance(0);
  expect(terms).toHaveLength(1);
});

test("lead continues to campaign while there is no quorum", async () => {
  cluster.cutOff("alice");
  const { terms, run } = work();
  const led = watch(alice.lead("a", run));
  await cluster.advance("10m");
  expect(led.state).toBe("pending");
  cluster.reconnect("alice");
  await cluster.advance("2s");
  expect(terms).toHaveLength(1);
});

test("an error that the work throws releases the lease and is rethrown", async () => {
  const error = new Error("bug");
  await expect(alice.lead("a", () => Promise.reject(error))).rejects.toBe(error);
  expect(await bob.tryAcquire("a")).toBeDefined();
  const thrower = () => {
    throw error;
  };
  await expect(alice.lead("b", thrower)).rejects.toBe(error);
});

test("lead campaigns again when the lease was lost, but only after the work has settled", async () => {
  const { terms, run } = work();
  const led = watch(alice.lead("a", run));
  await cluster.advance(0);
  cluster.lose("a");
  await cluster.advance(0);
  expect(terms[0]!.lease.signal.aborted).toBe(true);
  const other = await bob.tryAcquire("a");
  await other!.release();
  await cluster.advance("1m");
  expect(terms).toHaveLength(1);
  terms[0]!.finish("no longer of value");
  await cluster.advance(0);
  expect(terms).toHaveLength(2);
  expect(terms[1]!.lease.token).toBeGreaterThan(terms[0]!.lease.token);
  terms[1]!.finish("done");
  await cluster.advance(0);
  expect(led.value).toBe("done");
});

describe("after a loss", () => {
  const answers: [string, (lease: Lease) => unknown][] = [
    ["the signal's reason", (lease) => lease.signal.reason],
    ["an AbortError", () => new DOMException("aborted", "AbortError")],
    [
      "the LeaseLostError of assertHeld",
      (lease) => {
        try {
          lease.assertHeld();
          return undefined;
        } catch (error) {
          return error;
        }
      },
    ],
  ];

  test.each(answers)("%s, thrown by the work, ends the term without an error", async (_, errorOf) => {
    const { terms, run } = work();
    void alice.lead("a", run);
    await cluster.advance(0);
    cluster.lose("a");
    terms[0]!.fail(errorOf(terms[0]!.lease));
    await cluster.advance(0);
    expect(terms).toHaveLength(2);
  });

  test("any other error is rethrown", async () => {
    const { terms, run } = work();
    const led = watch(alice.lead("a", run));
    await cluster.advance(0);
    cluster.lose("a");
    terms[0]!.fail(new LeaseLostError("another resource", "expired"));
    await cluster.advance(0);
    expect(led.error).toMatchObject({ resource: "another resource" });
  });
});

test("an AbortError without a loss is an error like any other", async () => {
  const error = new DOMException("of the work's own", "AbortError");
  await expect(alice.lead("a", () => Promise.reject(error))).rejects.toBe(error);
});

test("work that released the lease itself and went on has succeeded", async () => {
  const value = await alice.lead("a", async (lease) => {
    await lease.release();
    return "done";
  });
  expect(value).toBe("done");
});

describe("its signal", () => {
  test("ends the campaign, and lead resolves with undefined", async () => {
    await bob.acquire("a");
    const controller = new AbortController();
    const led = watch(alice.lead("a", () => forever, { signal: controller.signal }));
    await cluster.advance("20s");
    controller.abort();
    await cluster.advance(0);
    expect(led).toMatchObject({ state: "fulfilled", value: undefined });
    expect(await alice.lead("a", () => forever, { signal: AbortSignal.abort() })).toBeUndefined();
  });

  test("ends the leadership: the work is asked to stop, keeps the lease until it has settled, and then it is released", async () => {
    const controller = new AbortController();
    const { terms, run } = work();
    const led = watch(alice.lead("a", run, { signal: controller.signal }));
    await cluster.advance(0);
    const { lease, finish } = terms[0]!;
    const reason = new Error("shutting down");
    controller.abort(reason);
    expect(lease.signal.reason).toBe(reason);
    await cluster.advance("1m");
    expect(() => lease.assertHeld()).not.toThrow();
    expect(await bob.tryAcquire("a")).toBeUndefined();
    expect(led.state).toBe("pending");
    finish("late");
    await cluster.advance(0);
    expect(led).toMatchObject({ state: "fulfilled", value: undefined });
    expect(await bob.tryAcquire("a")).toBeDefined();
  });

  test.each(["its reason", "an AbortError"])("%s, thrown by the work, is no failure", async (what) => {
    const controller = new AbortController();
    const { terms, run } = work();
    const led = watch(alice.lead("a", run, { signal: controller.signal }));
    await cluster.advance(0);
    controller.abort(new Error("shutting down"));
    terms[0]!.fail(what === "its reason" ? controller.signal.reason : new DOMException("x", "AbortError"));
    await cluster.advance(0);
    expect(led).toMatchObject({ state: "fulfilled", value: undefined });
  });

  test("does not hide another error of the work", async () => {
    const controller = new AbortController();
    const { terms, run } = work();
    const led = watch(alice.lead("a", run, { signal: controller.signal }));
    await cluster.advance(0);
    controller.abort();
    terms[0]!.fail(new Error("could not clean up"));
    await cluster.advance(0);
    expect(led.error).toEqual(new Error("could not clean up"));
  });

  test("may be shared by many calls without a warning", async () => {
    const warned = vi.spyOn(process, "emitWarning");
    const { signal } = new AbortController();
    for (let index = 0; index < 40; index += 1) {
      void alice.lead(`a${index % 20}`, () => forever, { signal });
      void watch(alice.acquire(`a${index % 20}`, { signal }));
    }
    await cluster.advance(0);
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });
});

describe("when the participant closes", () => {
  test("the work is asked to stop and given time before the lease is released; then lead rejects with CLOSED", async () => {
    const { terms, run } = work();
    const led = watch(alice.lead("a", run));
    await cluster.advance(0);
    const { lease, fail } = terms[0]!;
    const closed = watch(alice.close());
    expect(lease.signal.reason).toMatchObject({ reason: "closed" });
    await cluster.advance("500ms");
    lease.assertHeld();
    fail(lease.signal.reason);
    await cluster.advance(0);
    expect(closed.state).toBe("fulfilled");
    expect(led.error).toMatchObject({ code: "CLOSED" });
    expect(await bob.tryAcquire("a")).toBeDefined();
  });

  test("work that does not stop delays the close for a bounded time", async () => {
    void alice.lead("a", () => forever);
    await cluster.advance(0);
    const closed = watch(alice.close());
    await cluster.advance("2s");
    expect(closed.state).toBe("fulfilled");
    expect(await bob.tryAcquire("a")).toBeDefined();
  });
});
