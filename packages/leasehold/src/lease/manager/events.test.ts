import { AsyncLocalStorage } from "node:async_hooks";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ProgramHooks } from "../../common/ports.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { MemoryGround, type MemoryTenure } from "../../testing/memory-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { programHooks } from "../../runtime/program-hooks.js";
import { LeaseManager } from "./lease-manager.js";
import type { AttemptOutcome } from "../provider.js";
import type { Lease, LeaseEvents, Leases } from "../types.js";

/** Renews by itself, like a worker thread: the program's side only sees the remaining time. */
class RenewsByItself extends MemoryProvider {
  readonly renewsByItself = true;
  readonly #tenures: MemoryTenure[] = [];

  override async attempt(...asked: Parameters<MemoryProvider["attempt"]>): Promise<AttemptOutcome> {
    const outcome = await super.attempt(...asked);
    if (outcome.kind === "granted") this.#tenures.push(outcome.grant as MemoryTenure);
    return outcome;
  }

  extendAll(ttlMs: number): void {
    const { clock } = this;
    for (const tenure of this.#tenures) tenure.extendTo(clock.monotonicMs() + ttlMs, clock.wallMs() + ttlMs);
  }
}

const names = ["acquired", "renewal-late", "lost", "released"] as const;

let cluster: MemoryCluster;
let alice: Leases;
let emitted: string[];

function listen(leases: Leases): void {
  for (const name of names)
    leases.on(name, (event: LeaseEvents[typeof name]) => emitted.push(`${name} ${event.lease.resource}`));
}

beforeEach(() => {
  cluster = new MemoryCluster();
  alice = cluster.open("alice");
  emitted = [];
  listen(alice);
});

describe("listeners", () => {
  test("are notified of each lease's begin and end, by any call", async () => {
    await (await alice.acquire("a")).release();
    await (await alice.tryAcquire("b"))!.release();
    await alice.using(["d", "c"], () => undefined);
    await alice.lead("e", async () => undefined);
    expect(emitted).toEqual(
      [..."ab"]
        .flatMap((name) => [`acquired ${name}`, `released ${name}`])
        .concat(["acquired c", "acquired d", "released d", "released c", "acquired e", "released e"]),
    );
  });

  test("are notified of a loss after the signal, with the reason, and of leases that close ends as released", async () => {
    const lease = await alice.acquire("a");
    lease.signal.addEventListener("abort", () => emitted.push("signal"));
    const reasons: string[] = [];
    alice.on("lost", ({ error }) => reasons.push(error.reason));
    cluster.lose("a");
    await alice.acquire("b");
    const closed = alice.close();
    await cluster.advance("1s");
    await closed;
    expect(emitted).toEqual(["acquired a", "signal", "lost a", "acquired b", "released b"]);
    expect(reasons).toEqual(["clock-fault"]);
  });

  test("are notified once that a renewal failed, and again after one that succeeded", async () => {
    await alice.acquire("a", { ttl: "12s" });
    const left: number[] = [];
    alice.on("renewal-late", ({ remainingMs }) => left.push(remainingMs));
    cluster.cutOff("alice");
    await cluster.advance("8s");
    expect(emitted).toEqual(["acquired a", "renewal-late a"]);
    expect(left[0]).toBeGreaterThan(4_000);
    cluster.reconnect("alice");
    await cluster.advance("10s");
    expect(emitted).toHaveLength(2);
    cluster.cutOff("alice");
    await cluster.advance("20s");
    expect(emitted.slice(2)).toEqual(["renewal-late a", "lost a"]);
  });

  test("are notified of each renewal, automatic or not, when the lease has its new end", async () => {
    const left: number[] = [];
    alice.on("renewed", ({ lease }) => left.push(lease.remaining()));
    const lease = await alice.acquire("a", { ttl: "12s" });
    await cluster.advance("3s");
    expect(left).toEqual([]);
    await cluster.advance("3s");
    expect(left).toHaveLength(1);
    await lease.renew();
    expect(left).toHaveLength(2);
    for (const leftMs of left) expect(leftMs).toBeGreaterThan(11_000);
    // A lease that its listener ends is not renewed again.
    alice.on("renewed", () => void lease.release());
    await lease.renew().catch(() => undefined);
    await cluster.advance("20s");
    expect(left).toHaveLength(3);
  });

  test("are notified when less than a third remains and the renewal is unanswered", async () => {
    const world = new VirtualWorld();
    const provider = new MemoryProvider(new MemoryGround(), world, { name: "alice", ttlMaxMs: 15_000 });
    provider.renew = () => new Promise(() => undefined);
    const leases = new LeaseManager(provider, world);
    const left: number[] = [];
    leases.on("renewal-late", ({ remainingMs }) => left.push(remainingMs));
    await leases.acquire("a", { ttl: "9s" });
    await world.advance("5900ms");
    expect(left).toEqual([]);
    await world.advance("200ms");
    expect(left).toEqual([2_999]);
    await world.advance("1s");
    expect(left).toHaveLength(1);
  });

  test.each<[string, Fault | undefined]>([
    ["are notified of each late renewal by another thread", undefined],
    ["would miss the first one with the mistake", "threadIsNeverLate"],
    ["would miss the second one with the mistake", "threadIsLateOnce"],
  ])("%s %s", async (_title, fault) => {
    const world = new VirtualWorld();
    const provider = new RenewsByItself(new MemoryGround(), world, { name: "alice", ttlMaxMs: 15_000 });
    const renew = vi.spyOn(provider, "renew");
    const leases = new LeaseManager(provider, world);
    const left: number[] = [];
    leases.on("renewal-late", ({ remainingMs }) => left.push(remainingMs));
    const thread = async (renewals: number) => {
      for (let count = 0; count < renewals; count += 1) {
        provider.extendAll(9_000);
        await world.advance("3s");
      }
    };
    const run = async () => {
      const lease = await leases.acquire("a", { ttl: "9s" });
      await thread(4);
      expect(left).toEqual([]);
      await world.advance("4s");
      const first = left.length;
      await thread(4);
      await world.advance("4s");
      expect(lease.remaining()).toBe(2_000);
      await world.advance("2s");
      expect(lease.signal.aborted).toBe(true);
      return [first, left.length];
    };
    const counts = fault === undefined ? await run() : await duringFaults({ [fault]: true }, run);
    const expected = { threadIsNeverLate: [0, 0], threadIsLateOnce: [1, 1] } as Record<string, number[]>;
    expect(counts).toEqual(expected[fault ?? ""] ?? [1, 2]);
    for (const ms of left) expect(ms).toBe(2_999);
    expect(renew).not.toHaveBeenCalled();
  });

  test("may release a lease whose renewal is late: nothing is sent to the ground for it from then on", async () => {
    for (const blocked of [true, false]) {
      const world = new VirtualWorld();
      const provider = new MemoryProvider(new MemoryGround(), world, { name: "alice", ttlMaxMs: 15_000 });
      const renew = vi.spyOn(provider, "renew").mockRejectedValue(new Error("no answer"));
      const leases = new LeaseManager(provider, world);
      leases.on("renewal-late", ({ lease }) => void lease.release());
      await leases.acquire("a", { ttl: "9s" });
      if (blocked) world.block("7s");
      await world.advance(blocked ? 1 : "4s");
      expect(renew).toHaveBeenCalledTimes(blocked ? 0 : 1);
      expect(await provider.list("", 0)).toEqual([]);
      expect(world.pendingTimers).toBe(0);
    }
  });

  test("are not notified of lateness when the lease is to end: it does not renew itself, or maxHold is near", async () => {
    await alice.acquire("a", { autoRenew: false });
    await alice.acquire("b", { maxHold: "20s" });
    await cluster.advance("1m");
    expect(emitted.filter((text) => text.startsWith("renewal-late"))).toEqual([]);
  });

  test("are removed by the function that `on` returns, one at a time, also while they are called", async () => {
    const heard: string[] = [];
    const both = () => heard.push("both");
    const stops = [alice.on("acquired", both), alice.on("acquired", both)];
    const stop = alice.on("acquired", () => {
      heard.push("once");
      stop();
    });
    stops[0]!();
    stops[0]!();
    await alice.acquire("a");
    await alice.acquire("b");
    expect(heard).toEqual(["both", "once", "both"]);
  });

  test.each([["waits"], ["tries"]])("may abort the call that %s: it then has no lease", async (how) => {
    const stop = new AbortController();
    const reason = new Error("no longer wanted");
    alice.on("acquired", () => stop.abort(reason));
    const { signal } = stop;
    const call = how === "waits" ? alice.acquire("a", { signal }) : alice.tryAcquire("a", { signal });
    await expect(call).rejects.toBe(reason);
    expect(emitted).toEqual(["acquired a", "released a"]);
    expect(await cluster.open("bob").tryAcquire("a")).toBeDefined();
  });

  test("may close the participant: the call then has no lease", async () => {
    alice.on("acquired", () => void alice.close());
    await expect(alice.acquire("a")).rejects.toThrow(expect.objectContaining({ code: "CLOSED" }));
  });

  test("that a listener adds are called from the next event on, and those that one removes are called no more", async () => {
    const heard: string[] = [];
    const stop = alice.on("acquired", () => {
      heard.push("first");
      alice.on("acquired", () => heard.push("added"));
      stopNext();
      stop();
    });
    const stopNext = alice.on("acquired", () => heard.push("taken away"));
    await alice.acquire("a");
    expect(heard).toEqual(["first"]);
    await alice.acquire("b");
    expect(heard).toEqual(["first", "added"]);
  });

  test("are bounded in number, are functions, and listen to events that exist", () => {
    for (let count = 1; count < 100; count += 1) alice.on("lost", () => undefined);
    expect(() => alice.on("lost", () => undefined)).toThrow(
      expect.objectContaining({ code: "TOO_MANY_WAITERS" }),
    );
    const on = alice.on.bind(alice) as (name: string, listener: unknown) => unknown;
    for (const [name, listener] of [
      ["acquire", () => 1],
      ["toString", () => 1],
      ["lost", 5],
    ] as const)
      expect(() => on(name, listener)).toThrow(expect.objectContaining({ code: "INVALID_CONFIG" }));
  });
});

describe("calls", () => {
  test("are settled with the time that they waited, however they end", async () => {
    const settled: unknown[] = [];
    let waiting = 0;
    const bob = cluster.open("bob");
    bob.on("asked", () => (waiting += 1));
    bob.on("settled", ({ resource, outcome, waitedMs }) => {
      waiting -= 1;
      settled.push([resource, outcome, Math.round(waitedMs)]);
    });
    const lease = await alice.acquire("a");
    await bob.tryAcquire("a");
    const abort = new AbortController();
    const calls = [bob.acquire("a", { wait: "2s" }), bob.acquire("a", { signal: abort.signal })];
    const ends = Promise.allSettled(calls);
    expect(waiting).toBe(2);
    await cluster.advance("1s");
    abort.abort();
    await cluster.advance("1s");
    await ends;
    await lease.release();
    await bob.using(["b", "a"], () => undefined);
    await expect(bob.acquire("")).rejects.toMatchObject({ code: "INVALID_NAME" });
    expect(waiting).toBe(0);
    expect(settled).toEqual([
      ["a", "held", 0],
      ["a", "aborted", 1_000],
      ["a", "TIMEOUT", 2_000],
      ["a", "acquired", 0],
      ["b", "acquired", 0],
    ]);
  });

  test("of renewals say what was left of the lease", async () => {
    const slack: number[] = [];
    alice.on("renewed", ({ slackMs }) => slack.push(Math.round(slackMs)));
    await alice.acquire("a", { ttl: "3s" });
    await cluster.advance("2500ms");
    expect(slack).toEqual([2_000, 2_000]);
  });
});

describe("a program's hooks", () => {
  /** A participant in a process that subscribes to all channels, or to none. */
  function hooked(hasSubscribers: boolean) {
    const published: string[] = [];
    const warned: unknown[] = [];
    const channel = (name: string) => ({
      hasSubscribers,
      publish: (event: unknown) => {
        const { lease, resource = lease?.resource } = event as { lease?: Lease; resource?: string };
        published.push(`${name} ${resource}`);
      },
    });
    const hooks: ProgramHooks = {
      snapshot: () => (run) => run(),
      channel,
      warn: (what, error) => void warned.push(what, error),
    };
    const { clock, timers, random } = new VirtualWorld();
    const world = { clock, timers, random, hooks };
    const provider = new MemoryProvider(new MemoryGround(), world, { name: "alice", ttlMaxMs: 1_000 });
    return { leases: new LeaseManager(provider, world), published, warned };
  }

  test("channels have a name for each event, and nothing is published without a subscriber", async () => {
    for (const hasSubscribers of [true, false]) {
      const { leases, published } = hooked(hasSubscribers);
      await (await leases.acquire("a")).release();
      const names = ["asked", "acquired", "settled", "released"];
      const expected = hasSubscribers ? names.map((name) => `leasehold:${name} a`) : [];
      expect(published).toEqual(expected);
    }
  });

  test("listeners of a lease's signals run in the async context in which the signals were first read", async () => {
    const context = new AsyncLocalStorage<string>();
    const { clock, timers, random } = new VirtualWorld();
    const world = { clock, timers, random, hooks: programHooks };
    const ground = new MemoryGround();
    const [owner, other] = ["owner", "other"].map(
      (name) => new LeaseManager(new MemoryProvider(ground, world, { name, ttlMaxMs: 1_000 }), world),
    );
    const heard: string[] = [];
    const lease = await owner!.acquire("a");
    context.run("reader", () => {
      for (const [name, signal] of [
        ["asked", lease.releaseRequested],
        ["ended", lease.signal],
      ] as const)
        signal.addEventListener("abort", () => heard.push(`${name} ${context.getStore()}`));
    });
    await context.run("asker", () => other!.requestRelease("a"));
    await context.run("releaser", () => lease.release());
    expect(heard).toEqual(["asked reader", "ended reader"]);
  });

  test("a rejected promise of a listener is only warned of", async () => {
    const { leases, warned } = hooked(false);
    const bug = new Error("of the listener");
    leases.on("acquired", () => Promise.reject(bug));
    await leases.acquire("a");
    expect(warned).toEqual(['a listener of "acquired" threw', bug]);
  });

  test("an error of a listener is only warned of, and the other listeners are called all the same", async () => {
    const { leases, warned } = hooked(false);
    const bug = new Error("of the listener");
    const heard = vi.fn<() => void>();
    for (const name of names) {
      leases.on(name, () => {
        throw bug;
      });
      leases.on(name, heard);
    }
    const lease = await leases.acquire("a");
    await lease.release();
    expect(lease.remaining()).toBe(0);
    expect(heard).toHaveBeenCalledTimes(2);
    expect(warned).toEqual(['a listener of "acquired" threw', bug, 'a listener of "released" threw', bug]);
    expect((await leases.acquire("a")).token).toBeGreaterThan(lease.token);
  });
});
