import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openFleaseClient } from "../../packages/leasehold/src/flease/tcp/client.js";
import type { FleaseNode } from "../../packages/leasehold/src/flease/tcp/flease-node.js";
import { realWorld } from "../../packages/leasehold/src/runtime/world.js";
import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { Leases } from "../../packages/leasehold/src/lease/types.js";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/** Waiters for one resource, over real sockets: how soon they get it, and whether each of them does. */

const skewMs = 40;
let cluster: LocalCluster;
const nodes: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  cluster = await startLocalCluster({ maxClockSkew: `${skewMs}ms` });
});
afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.close()));
});
afterAll(() => cluster.close());

/** A client whose wall clock is ahead of this machine's. */
async function connect(name: string, aheadMs = 0): Promise<FleaseNode> {
  const world = realWorld();
  const { monotonicMs, wallMs } = world.clock;
  const clock = {
    monotonicMs: monotonicMs.bind(world.clock),
    wallMs: () => wallMs.call(world.clock) + aheadMs,
  };
  const addresses = cluster.urls.map((url) => url.slice("flease://".length));
  const node = await openFleaseClient(addresses, { name }, { ...world, clock });
  // Opening resolves with a majority, but a member that does not know a waiter would notify another one.
  while (node.reachable() < cluster.members.length) await sleep(1);
  return node;
}

async function client(name: string, aheadMs = 0): Promise<Leases> {
  const node = await connect(name, aheadMs);
  const leases = new LeaseManager(node.provider, realWorld());
  nodes.push(leases);
  return leases;
}

/** All acquire the resource repeatedly, `handOvers` times in total. Returns the number for each. */
async function contend(resource: string, contenders: Leases[], handOvers: number): Promise<number[]> {
  const turns = contenders.map(() => 0);
  let left = handOvers;
  await Promise.all(
    contenders.map(async (leases, index) => {
      while (left > 0) {
        const lease = await leases.acquire(resource);
        left -= 1;
        turns[index]! += 1;
        await sleep(1);
        await lease.release();
      }
    }),
  );
  return turns;
}

describe("nobody starves", () => {
  test("whatever their clocks show within ε, and although the last holder is always the fastest", async () => {
    const offsets = [-skewMs / 2, -10, 0, 0, 10, skewMs / 2];
    const contenders = await Promise.all(offsets.map((offset, index) => client(`c${index}`, offset)));
    const turns = await contend("fair", contenders, 300);
    expect(Math.max(...turns)).toBeLessThan(2 * Math.min(...turns));
  });

  test("by many callers of another process", async () => {
    const [many, one] = [await client("many"), await client("one")];
    const turns = await contend("crowded", [...Array.from({ length: 20 }, () => many), one], 200);
    expect(turns.at(-1)).toBeGreaterThan(200 / 4);
  });
});

describe("a hand-over", () => {
  test("goes to the named waiter, even if it came last, with a greater token", async () => {
    const [holder, ...others] = await Promise.all(
      ["h", "first", "second", "last"].map((name) => client(name)),
    );
    const lease = await holder!.acquire("handed");
    lease.releaseRequested.addEventListener("abort", () => void lease.release());
    const order: [number, bigint][] = [];
    const waiting: Promise<void>[] = [];
    for (const [index, leases] of others.entries()) {
      const turn = leases.acquire("handed").then((next) => {
        order.push([index, next.token]);
        return next.release();
      });
      waiting.push(turn);
      while ((await holder!.explain("handed")).waiting! <= index) await sleep(5);
    }
    await expect(holder!.handOver("handed", "nobody")).rejects.toMatchObject({ code: "NOT_WAITING" });
    expect([lease.releaseRequested.aborted, lease.remaining() > 0]).toEqual([false, true]);
    expect(await holder!.handOver("handed", "last")).toMatchObject({ done: true });
    await Promise.all(waiting);
    expect(order.map(([index]) => index)).toEqual([2, 0, 1]);
    expect(order[0]![1]).toBeGreaterThan(lease.token);
  });
});

describe("a waiter that does not react when it is notified", () => {
  const patienceMs = 50;
  const noiseMs = 400;

  /** The waiter is the first on the lists, and ignores a release. */
  async function deafWaiter(resource: string): Promise<FleaseNode> {
    const node = await connect("deaf");
    node.provider.attach({ ...silentEvents, hint: () => true });
    const { ttlMaxMs: ttlMs } = node.provider.guarantees;
    await node.provider.attempt({ resource, ttlMs, timeoutMs: 500, contended: false, waiting: true });
    return node;
  }
  const silentEvents = { lost: () => undefined };

  async function handOverMs(resource: string, beforeRelease: (deaf: FleaseNode) => Promise<void>) {
    const [holder, heir] = [await client("holder"), await client("heir")];
    const lease = await holder.acquire(resource);
    const deaf = await deafWaiter(resource);
    const waiting = heir.acquire(resource);
    await sleep(50);
    await beforeRelease(deaf);
    const released = performance.now();
    await lease.release();
    await (await waiting).release();
    const tookMs = performance.now() - released;
    await deaf.close();
    return tookMs;
  }

  test("delays the next waiter only for a moment", async () => {
    const tookMs = await handOverMs("stopped", async () => undefined);
    expect(tookMs).toBeGreaterThan(patienceMs - 5);
    expect(tookMs).toBeLessThan(patienceMs + noiseMs);
  });

  test("delays no one when its connection is gone, and is forgotten", async () => {
    let waitersLeft: number[] = [];
    const tookMs = await handOverMs("gone", async (deaf) => {
      await deaf.close();
      await sleep(20);
      waitersLeft = cluster.members.map((member) => member.status().waiters);
    });
    expect(waitersLeft).toEqual([1, 1, 1]);
    expect(tookMs).toBeLessThan(patienceMs);
  });
});

test("members forget a client that no longer waits", async () => {
  const [holder, waiter] = [await client("holder"), await client("waiter")];
  const lease = await holder.acquire("aborted");
  await expect(waiter.acquire("aborted", { wait: "30ms" })).rejects.toMatchObject({ code: "TIMEOUT" });
  const waiters = () => cluster.members.map((member) => member.status().waiters);
  expect(Math.max(...waiters())).toBe(1);
  await lease.release();
  await sleep(50);
  expect(waiters()).toEqual([0, 0, 0]);
});
