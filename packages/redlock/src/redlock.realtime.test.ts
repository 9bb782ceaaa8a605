import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, open } from "leasehold";
import { afterAll, describe, expect, test } from "vitest";
import { runRedlockConformance } from "../../../test/frameworks/redlock-conformance.js";
import { ExecutionError, Lock, Redlock, ResourceLockedError } from "./index.js";

const address = `memory:redlock-${process.pid}`;
const once = { retryCount: 0 };
const leases = await open(address);
const programs: Redlock[] = [];
afterAll(() => Promise.all(programs.map((redlock) => redlock.quit())));

function create(settings = {}): Redlock {
  const redlock = new Redlock(address, settings);
  programs.push(redlock);
  return redlock;
}

/** Blocks the event loop, as a long computation or a stopped process does. */
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe.concurrent("the drop-in in memory", () => {
  runRedlockConformance(() => ({
    create: async (settings) => new Redlock(address, settings),
    ExecutionError,
    ResourceLockedError,
    steal: (resource) => leases.break(resource),
    earlierMsMax: (durationMs) => durationMs / 100,
  }));
});

describe.concurrent("beyond redlock", () => {
  test("each lock has greater tokens than earlier locks, also in a routine", async () => {
    const redlock = create();
    const first = await redlock.acquire(["t/b", "t/a"], 5_000);
    const before = first.tokens;
    expect([...before.keys()]).toEqual(["t/a", "t/b"]);
    await first.release();
    await redlock.using(["t/a", "t/b"], 5_000, async (_, { lock }) => {
      expect(lock).toBeInstanceOf(Lock);
      expect(lock.expiration).toBeGreaterThan(Date.now() + 4_000);
      for (const [name, token] of lock.tokens) expect(token).toBeGreaterThan(before.get(name)!);
    });
  });

  test("an expiration is never later than the lease's own end, however long the duration", async () => {
    const acquired: Lease[] = [];
    const own = await open(address);
    own.on("acquired", ({ lease }) => acquired.push(lease));
    const redlock = new Redlock(own);
    programs.push(redlock);
    const day = 86_400_000;
    const lock = await redlock.acquire(["long"], day);
    const [lease] = acquired;
    expect(lease!.ttlMs).toBe(own.guarantees.ttlMaxMs);
    // Date.now() is up to a millisecond behind.
    const endMs = () => Date.now() + 1 + lease!.remaining();
    expect(lock.expiration).toBeLessThanOrEqual(endMs());
    const longer = await lock.extend(2 * day);
    expect(longer.expiration).toBeLessThanOrEqual(endMs());
    expect(longer.expiration).toBeGreaterThan(Date.now() + lease!.ttlMs / 2);
  });

  test("a duration beyond the longest timer does not end at once", async () => {
    const redlock = create();
    const lock = await redlock.acquire(["month"], 2 ** 31);
    await sleep(50);
    expect(lock.expiration).toBeGreaterThan(Date.now());
    await lock.release();
  });

  test("a lock of several resources ends when one lease is lost, and its extension fails with the loss", async () => {
    const redlock = create(once);
    const lock = await redlock.acquire(["l/a", "l/b"], 1_500);
    const longer = await lock.extend(60_000);
    await leases.break("l/b");
    await expect.poll(() => longer.expiration, { interval: 20 }).toBe(0);
    await expect(longer.extend(1_000)).rejects.toMatchObject({ name: "ExecutionError" });
    expect(await leases.tryAcquire("l/a")).toBeUndefined();
    await expect(longer.release()).rejects.toBeInstanceOf(ExecutionError);
    await using free = await leases.tryAcquire("l/a");
    expect(free).toBeDefined();
  });

  test("an extension fails if a lease is lost meanwhile", async () => {
    const own = await open(address);
    const redlock = new Redlock(own);
    programs.push(redlock);
    const lock = await redlock.acquire(["e"], 60_000);
    const extension = lock.extend(60_000);
    await lock.release();
    await expect(extension).rejects.toMatchObject({ name: "ExecutionError", cause: { code: "LEASE_LOST" } });
  });

  test("a call that cannot get one of several resources holds none while it waits", async () => {
    const redlock = create();
    await using taken = await leases.acquire("w/b");
    const both = redlock.acquire(["w/a", "w/b"], 2_000, { retryCount: 2, retryDelay: 300, retryJitter: 0 });
    await sleep(150);
    await using free = await leases.tryAcquire("w/a");
    expect([free?.token, taken.remaining()]).toEqual([expect.any(BigInt), expect.any(Number)]);
    await free?.release();
    await taken.release();
    expect((await both).attempts.length).toBeGreaterThan(1);
  });

  test("a caller acquires a single resource as soon as it is free", async () => {
    const redlock = create();
    const taken = await leases.acquire("soon");
    const next = redlock.acquire(["soon"], 2_000, { retryCount: 1, retryDelay: 20_000, retryJitter: 0 });
    await sleep(50);
    const startMs = performance.now();
    await taken.release();
    await next;
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });

  test("a mistake of the program is reported at once, unchanged", async () => {
    const redlock = create({ retryCount: -1 });
    await expect(redlock.acquire([""], 2_000)).rejects.toMatchObject({ code: "INVALID_NAME" });
    await expect(redlock.acquire([], 2_000)).rejects.toMatchObject({ code: "INVALID_NAME" });
    const many = Array.from({ length: 65 }, (_, index) => `many/${index}`);
    await expect(redlock.acquire(many, 2_000)).rejects.toMatchObject({ code: "INVALID_NAME" });
    await (await redlock.acquire(many.slice(1), 2_000)).release();
  });

  test("quit ends the calls that wait, and the work of routines", async () => {
    const redlock = new Redlock(address, { retryCount: -1, retryDelay: 20_000 });
    await using taken = await leases.acquire("q/a");
    const waiting = [redlock.acquire(["q/a"], 2_000), redlock.acquire(["q/a", "q/b"], 2_000)];
    const work = redlock.using(["q/c"], 2_000, async (signal) => {
      while (!signal.aborted) await sleep(5);
      throw signal.error!;
    });
    for (const call of [...waiting, work]) call.catch(() => undefined);
    await sleep(50);
    const startMs = performance.now();
    await redlock.quit();
    for (const call of waiting) await expect(call).rejects.toMatchObject({ code: "CLOSED" });
    expect(performance.now() - startMs).toBeLessThan(10_000);
    await expect(work).rejects.toMatchObject({ cause: { reason: "closed" } });
    expect(taken.remaining()).toBeGreaterThan(0);
    await expect(redlock.acquire(["q/d"], 2_000)).rejects.toMatchObject({ code: "CLOSED" });
  });

  test("the last thousand attempts are kept", async () => {
    const redlock = create({ retryDelay: 0, retryJitter: 0 });
    await using taken = await leases.acquire("k");
    const failed = async (retryCount: number) => {
      const error: unknown = await redlock.acquire(["k"], 2_000, { retryCount }).catch((reason) => reason);
      return error instanceof ExecutionError ? [error.attempts.length, error.message] : error;
    };
    expect(await failed(1_000)).toEqual([1_000, "None of 1001 attempts succeeded."]);
    expect(taken.remaining()).toBeGreaterThan(0);
  });

  test("the constructor takes one ground: leases, or addresses", async () => {
    expect(() => new Redlock([])).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
    expect(() => new Redlock([leases, leases])).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
    expect(() => new Redlock([leases, address])).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
    expect([...new Redlock([leases]).clients]).toEqual([leases]);
    expect([...new Redlock(["flease://a:1", "flease://b:1"]).clients]).toEqual(["flease://a:1 flease://b:1"]);
    await new Redlock(address).quit();
  });
});

test("a routine detects in the first statement after a pause that the lock is lost", async () => {
  const redlock = create(once);
  const errors: Error[] = [];
  redlock.on("error", (error: Error) => errors.push(error));
  const read: unknown[] = [];
  const work = redlock.using(["pause"], 700, async (signal, { lock }) => {
    block(1_100);
    read.push(signal.aborted, lock.expiration);
    expect(() => signal.throwIfAborted()).toThrow(ExecutionError);
    expect(signal.error).toBe(signal.reason);
    return "written";
  });
  await expect(work).rejects.toMatchObject({ name: "ExecutionError", cause: { code: "LEASE_LOST" } });
  expect(read).toEqual([true, 0]);
  expect(errors[0]).toBeInstanceOf(ExecutionError);
});

test("after a pause beyond its duration a lock can neither be extended nor released", async () => {
  const redlock = create(once);
  const lock = await redlock.acquire(["late"], 300);
  block(500);
  expect(lock.expiration).toBe(0);
  await expect(lock.extend(300)).rejects.toBeInstanceOf(ExecutionError);
  await expect(lock.release()).rejects.toBeInstanceOf(ExecutionError);
});
