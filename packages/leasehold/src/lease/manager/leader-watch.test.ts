import { beforeEach, describe, expect, test } from "vitest";
import { watch } from "../../../../../test/support/scripted-provider.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import { MemoryGround } from "../../testing/memory-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import { LeaseManager } from "./lease-manager.js";
import type { Change, LeaderObserver, Leases } from "../types.js";

let cluster: MemoryCluster;
let alice: Leases;
let bob: Leases;

beforeEach(() => {
  cluster = new MemoryCluster();
  alice = cluster.open("alice");
  bob = cluster.open("bob");
});

/** Reads what has been reported so far. */
async function read(changes: AsyncIterator<Change, undefined>): Promise<string> {
  const next = watch(changes.next());
  await cluster.advance(100);
  if (next.state === "rejected") return String(next.error);
  if (next.state === "pending") return "nothing";
  const change = next.value!.value;
  return change === undefined ? "end" : `${change.state} ${change.holder ?? ""}`.trim();
}

describe("a leader's observer", () => {
  test("first reports that nobody leads, and then each change", async () => {
    const leader = bob.leader("a");
    expect(leader.current).toBeUndefined();
    expect(await read(leader)).toBe("free");
    const lease = await alice.acquire("a");
    expect(await read(leader)).toBe(`held ${alice.self}`);
    expect(leader.current).toMatchObject({ resource: "a", token: lease.token });
    await lease.release();
    expect(await read(leader)).toBe("free");
    await alice.close();
  });

  test("first reports who leads, and nothing of renewals or of longer names", async () => {
    await alice.acquire("a");
    const leader = bob.leader("a");
    expect(await read(leader)).toBe(`held ${alice.self}`);
    await alice.acquire("a/b");
    await alice.acquire("ab");
    const next = watch(leader.next());
    await cluster.advance("5m");
    expect(next.state).toBe("pending");
  });

  test("has the newest change although nobody reads, and merges unread changes", async () => {
    const leader = bob.leader("a");
    for (let term = 0; term < 5; term += 1) {
      const lease = await alice.acquire("a");
      await cluster.advance(100);
      expect(leader.current).toMatchObject({ state: "held", token: lease.token });
      await lease.release();
      await cluster.advance(100);
      expect(leader.current).toMatchObject({ state: "free" });
    }
    expect(await read(leader)).toBe("free");
    const next = watch(leader.next());
    await cluster.advance("1m");
    expect(next.state).toBe("pending");
  });

  test("reports a leader that was cut off for no longer than its lease", async () => {
    await alice.acquire("a");
    const leader = bob.leader("a");
    await read(leader);
    cluster.cutOff("alice");
    await cluster.advance("16s");
    expect(leader.current).toMatchObject({ state: "free" });
  });

  test("knows nothing while it is cut off itself, and learns more when it is connected again", async () => {
    cluster.cutOff("bob");
    const leader = bob.leader("a");
    await alice.acquire("a");
    await cluster.advance("10s");
    expect(leader.current).toBeUndefined();
    cluster.reconnect("bob");
    expect(await read(leader)).toBe(`held ${alice.self}`);
  });

  test("reports that nobody leads as soon as a query can tell", async () => {
    cluster.cutOff("bob");
    const leader = bob.leader("a");
    await cluster.advance("30s");
    expect(leader.current).toBeUndefined();
    cluster.reconnect("bob");
    await cluster.advance("7s");
    expect(leader.current).toMatchObject({ state: "free" });
    await leader.return!();
    expect(cluster.world.pendingTimers).toBe(0);
  });

  test("keeps a process alive only while a reader waits for its next change", async () => {
    let uses = 0;
    const keepAlive = { ref: () => void (uses += 1), unref: () => void (uses -= 1) };
    const { clock, timers, random } = cluster.world;
    const world = { clock, timers, random, keepAlive };
    const provider = new MemoryProvider(new MemoryGround(), world, { name: "carol", ttlMaxMs: 1_000 });
    const leader = new LeaseManager(provider, world).leader("a");
    expect(uses).toBe(0);
    const first = watch(leader.next());
    const second = watch(leader.next());
    expect(uses).toBe(2);
    await cluster.advance("1s");
    expect([first.state, second.state, uses]).toEqual(["fulfilled", "pending", 1]);
    await leader.return!();
    expect(uses).toBe(0);
  });

  const controller = () => new AbortController();
  const ends: [string, (leader: LeaderObserver, controller: AbortController) => unknown][] = [
    ["its signal", (_, { abort }) => abort],
    ["the end of the loop", (leader) => leader.return!()],
    ["close()", () => bob.close()],
  ];
  test.each(ends)("ends with %s, and leaves nothing behind", async (name, end) => {
    const own = controller();
    await alice.acquire("a", { autoRenew: false });
    const leader = bob.leader("a", { signal: own.signal });
    await read(leader);
    if (name === "its signal") own.abort();
    else await end(leader, own);
    expect(await read(leader)).toBe("end");
    expect(leader.current).toBeUndefined();
    await cluster.advance("20s");
    expect(cluster.world.pendingTimers).toBe(0);
  });

  test("counts as a watch, of which there are 16, and needs a name", async () => {
    const observers = Array.from({ length: 16 }, () => bob.leader("a"));
    expect(() => bob.leader("a")).toThrow(expect.objectContaining({ code: "TOO_MANY_WAITERS" }));
    await observers[0]!.return!();
    bob.leader("a");
    expect(() => alice.leader("")).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
    expect(() => alice.watch("", { exact: true })).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
  });
});

test("a watch of one exact name reports no longer name", async () => {
  for (const name of ["a", "a/b", "ab"]) await alice.acquire(name);
  const exact = bob.watch("a", { exact: true });
  expect(await read(exact)).toBe(`held ${alice.self}`);
  expect(await read(exact)).toBe("nothing");
});

describe("the answers to participants", () => {
  const parsed = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  test("are JSON as they are: tokens are decimal strings, also nested ones", async () => {
    const lease = await alice.acquire("a");
    const token = String(lease.token);
    const leader = bob.leader("a");
    await cluster.advance(100);
    const watching = bob.watch("a").next();
    await cluster.advance(100);
    const answers = [
      bob.holder("a"),
      bob.list().then(([first]) => first),
      bob.explain("a"),
      leader.current,
      watching.then(({ value }) => value),
      bob.requestRelease("a"),
      bob.break("a"),
    ];
    for (const each of await Promise.all(answers)) expect(parsed(each)).toMatchObject({ token });
    expect(parsed({ list: await bob.list() })).toMatchObject({ list: [{ token }] });
  });

  test("have the same fields as ever", async () => {
    const lease = await alice.acquire("a");
    const hint = await bob.holder("a");
    expect(Object.keys(hint).toSorted()).toEqual(["confirmed", "holder", "remainingMs", "state", "token"]);
    expect(hint.token).toBe(lease.token);
    expect(structuredClone(hint)).toEqual({ ...hint });
  });
});
