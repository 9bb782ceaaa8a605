import { describe, expect, test } from "vitest";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import { waitFor } from "../../../../../test/support/wait-for.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { AttemptOutcome, Grant } from "../../lease/provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { decodeRecord, encodeRecord } from "../record/codec.js";
import type { MemoryMedium, MemoryMediumOptions } from "../memory/memory-store.js";
import type { DeltaOptions } from "../provider/open.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { DeltaProvider } from "../provider/provider.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";

const ttlMs = 1_000;
const register = leaseRegister("r");

/** Virtual time, three stores, and processes by name. */
class Stage {
  readonly world = new VirtualWorld();
  readonly farm: MemoryFarm;

  constructor(size = 3, media: Partial<MemoryMediumOptions> = {}) {
    this.farm = new MemoryFarm(this.world, size, { delayMs: 50, ...media });
  }

  get media(): readonly MemoryMedium[] {
    return this.farm.media;
  }

  open(name: string, options: Partial<DeltaOptions> = {}): Promise<DeltaProvider> {
    return this.wait(
      this.farm.open(name, this.world, { leaseMsMax: 2_000, clockRateError: 0.01, ...options }),
    );
  }

  wait<T>(promise: Promise<T>): Promise<T> {
    return waitFor(this.world, promise);
  }

  attempt(provider: DeltaProvider, leaseMs = ttlMs, timeoutMs = 500): Promise<AttemptOutcome> {
    const request = { resource: "r", ttlMs: leaseMs, timeoutMs, contended: false, waiting: true };
    return this.wait(provider.attempt(request));
  }

  async take(provider: DeltaProvider, leaseMs = ttlMs): Promise<Grant> {
    const outcome = await this.attempt(provider, leaseMs);
    if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    return outcome.grant;
  }

  renew(provider: DeltaProvider, grant: Grant, leaseMs = ttlMs): Promise<boolean> {
    return this.wait(provider.renew(grant, leaseMs));
  }

  records(): (DeltaRecord | undefined)[] {
    return this.media.map((medium) => medium.cells(register).map(decodeRecord)[0]);
  }

  writers(): string[] {
    return this.records().map((record) =>
      record === undefined ? "-" : record.state === "free" ? "free" : record.writer.split(".")[0]!,
    );
  }
}

/** A contender's wait in (c), with this stage's ρ. */
const stretchedMs = Math.ceil((ttlMs * 1.01) / 0.99);

describe("a contender replaces a cell", () => {
  test("(a) that was never written, at once and with one read and one write per store", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const before = stage.media.map(({ performed }) => ({ ...performed }));
    const grant = await stage.take(alice);
    await stage.world.settle();
    expect(stage.world.clock.monotonicMs()).toBe(0);
    expect([grant.token, grant.remainingMs()]).toEqual([1n, ttlMs]);
    expect(stage.writers()).toEqual(["alice", "alice", "alice"]);
    stage.media.forEach(({ performed }, store) => {
      expect(performed.read - before[store]!.read).toBe(1);
      expect(performed.replace - before[store]!.replace).toBe(1);
    });
  });

  test("(a) that was released, at once and with a greater token", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    await alice.release(await stage.take(alice));
    expect((await stage.take(bob)).token).toBe(2n);
    expect(stage.world.clock.monotonicMs()).toBe(0);
  });

  test("(a) that it released itself, without a read: each store compares with the content it left there", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    await alice.release(await stage.take(alice));
    await stage.world.settle();
    const before = stage.media.map(({ performed }) => ({ ...performed }));
    expect((await stage.take(alice)).token).toBe(2n);
    await stage.world.settle();
    stage.media.forEach(({ performed }, store) => {
      expect(performed.read - before[store]!.read).toBe(0);
      expect(performed.replace - before[store]!.replace).toBe(1);
    });
  });

  test("that it released itself, like any other, if another process has had it since", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    await alice.release(await stage.take(alice));
    const grant = await stage.take(bob);
    await stage.world.settle();
    expect(await stage.attempt(alice)).toMatchObject({ kind: "held", holder: bob.holder });
    await stage.world.advance(10);
    expect(await stage.renew(bob, grant)).toBe(true);
    await bob.release(grant);
    expect((await stage.take(alice)).token).toBe(3n);
  });

  test("(b) that its own process left behind, at once: the process knows that it does not hold", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const first = await stage.take(alice);
    expect((await stage.take(alice)).token).toBe(2n);
    expect([first.remainingMs(), stage.world.clock.monotonicMs()]).toEqual([0, 0]);
  });

  test("(c) that it has observed unchanged for Δ by its own clock, stretched, and no sooner", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    await stage.take(alice);
    await stage.world.advance(300);
    // First observed at 300 ms: bob cannot know that it is older.
    expect(await stage.attempt(bob)).toMatchObject({ kind: "held", retryInMs: 5 });
    await stage.world.advance(stretchedMs - 1);
    expect(await stage.attempt(bob)).toMatchObject({ kind: "held", retryInMs: 1 });
    await stage.world.advance(1);
    expect((await stage.take(bob)).token).toBe(2n);
  });

  test("(c) by the Δ of the record, not by its own", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    await stage.take(alice, 2_000);
    expect((await stage.attempt(bob, 200)).kind).toBe("held");
    await stage.world.advance(stretchedMs);
    expect((await stage.attempt(bob, 200)).kind).toBe("held");
    await stage.world.advance(stretchedMs);
    expect((await stage.attempt(bob, 200)).kind).toBe("granted");
  });

  test("(c) whose observation starts again with every renewal", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    for (let times = 0; times < 5; times += 1) {
      expect((await stage.attempt(bob)).kind).toBe("held");
      await stage.world.advance(ttlMs - 1);
      expect(await stage.renew(alice, grant)).toBe(true);
    }
    expect(stage.writers()).toEqual(["alice", "alice", "alice"]);
  });

  test("not by a clock that stands still: a wall clock that jumps proves nothing", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    await stage.attempt(bob);
    stage.world.stepWall(60_000);
    expect((await stage.attempt(bob)).kind).toBe("held");
    // For the holder the wall clock counts, too: its machine may have been asleep.
    expect([grant.remainingMs(), grant.lossReason]).toEqual([0, "clock-fault"]);
  });
});

describe("a hold", () => {
  test("counts from before the write that won it, and after a renewal from before that renewal's write", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    for (const medium of stage.media) medium.latencyMs = { request: 5, answer: 7 };
    const grant = await stage.take(alice);
    expect(grant.remainingMs()).toBe(ttlMs - 12);
    await stage.world.advance(500);
    expect(await stage.renew(alice, grant)).toBe(true);
    expect(grant.remainingMs()).toBe(ttlMs - 12);
    const late = new Stage();
    const carol = await late.open("carol");
    for (const medium of late.media) medium.latencyMs = { request: 5, answer: 7 };
    const planted = await duringFaults({ holdFromEndOfWrite: true }, () => late.take(carol));
    expect(planted.remainingMs()).toBe(ttlMs);
  });

  test("whose write took its whole Δ is never held, and is withdrawn", async () => {
    const stage = new Stage(3, { delayMs: 300 });
    const alice = await stage.open("alice", { leaseMsMax: 900 });
    for (const medium of stage.media) medium.latencyMs = { request: 0, answer: 150 };
    expect(await stage.attempt(alice, 100, 200)).toMatchObject({ kind: "failed" });
    expect(stage.writers()).toEqual(["free", "free", "free"]);
  });

  test.each([
    ["the wall clock steps back", 0, -3_600_000],
    ["a machine sleeps and its wall clock is right", ttlMs, 0],
    ["a machine sleeps and its wall clock is slow when it wakes", 3 * ttlMs, -2.5 * ttlMs],
  ])("is over for good when the two clocks disagree: %s", async (_, sleepMs, stepMs) => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice);
    stage.world.stepWall(-ttlMs / 20);
    expect(grant.remainingMs()).toBe(ttlMs);
    stage.world.suspend(sleepMs);
    stage.world.stepWall(stepMs);
    expect(grant.remainingMs()).toBe(0);
    stage.world.stepWall(-ttlMs);
    expect(grant.remainingMs()).toBe(0);
    expect(await stage.renew(alice, grant)).toBe(false);
  });
});

describe("a renewal", () => {
  test("costs one write per store and no read", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice);
    await stage.world.settle();
    const before = stage.media.map(({ performed }) => ({ ...performed }));
    expect(await stage.renew(alice, grant)).toBe(false); // Nothing gained in no time.
    await stage.world.advance(100);
    expect(await stage.renew(alice, grant)).toBe(true);
    stage.media.forEach(({ performed }, store) => {
      expect(performed.read - before[store]!.read).toBe(0);
      expect(performed.replace - before[store]!.replace).toBe(2);
    });
  });

  test("without an answer is unknown: the old end remains, and the next renewal learns the outcome", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    await stage.world.advance(300);
    for (const medium of stage.media) medium.stall("answers");
    expect(await stage.renew(alice, grant)).toBe(false);
    expect(grant.remainingMs()).toBe(ttlMs - 350);
    for (const medium of stage.media) medium.resume();
    // The write did land: bob must wait from then on, and alice continues from there.
    expect((await stage.attempt(bob)).kind).toBe("held");
    expect(await stage.renew(alice, grant)).toBe(true);
    expect(grant.remainingMs()).toBe(ttlMs);
  });

  test("that lands late extends nothing and acquires nothing", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    await stage.attempt(bob);
    for (const medium of stage.media) medium.stall("requests");
    const ghost = stage.renew(alice, grant);
    expect(await ghost).toBe(false);
    await stage.world.advance(stretchedMs);
    expect(grant.remainingMs()).toBe(0);
    // The delayed writes land before bob's: he has to wait for their Δ. Nobody holds meanwhile.
    for (const medium of stage.media) medium.resume();
    await stage.world.settle();
    expect((await stage.attempt(bob)).kind).toBe("held");
    await stage.world.advance(stretchedMs);
    const next = await stage.take(bob);
    expect([next.token, grant.remainingMs()]).toEqual([2n, 0]);
  });

  test("that lands after the successor's write fails there", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    await stage.attempt(bob);
    stage.media[0]!.stall("requests");
    const ghost = stage.renew(alice, grant);
    await ghost;
    stage.media[1]!.latencyMs = { request: 3, answer: 0 };
    await stage.world.advance(2 * stretchedMs);
    await stage.attempt(bob);
    await stage.world.advance(stretchedMs);
    const next = await stage.take(bob);
    stage.media[0]!.resume();
    await stage.world.advance(50);
    // Alice's delayed write reached only the first store, which bob has not written: it is one of three.
    expect(stage.writers().filter((writer) => writer === "bob").length).toBeGreaterThanOrEqual(2);
    expect(await stage.renew(alice, grant)).toBe(false);
    expect(await stage.renew(bob, next)).toBe(true);
  });

  test("never writes a smaller Δ than the tenure had: contenders would wait too little", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice, 2_000);
    await stage.world.advance(100);
    expect(await stage.renew(alice, grant, 500)).toBe(false);
    expect(grant.remainingMs()).toBe(1_900);
    expect(stage.records().map((record) => record?.leaseMs)).toEqual([2_000, 2_000, 2_000]);
  });

  test("heals stores that were silent", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    stage.media[2]!.stall("requests");
    const grant = await stage.take(alice);
    await stage.world.advance(100);
    stage.media[2]!.crash();
    expect(stage.writers()).toEqual(["alice", "alice", "-"]);
    await stage.renew(alice, grant);
    await stage.world.settle();
    expect(stage.writers()).toEqual(["alice", "alice", "alice"]);
  });
});

describe("a release", () => {
  test("leaves the epoch, and frees every store", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    await alice.release(await stage.take(alice));
    await stage.world.settle();
    expect(stage.records()).toMatchObject(Array.from({ length: 3 }, () => ({ state: "free", epoch: 1n })));
  });

  test("over a successor is impossible, however late it arrives", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const grant = await stage.take(alice);
    await stage.attempt(bob);
    await stage.world.advance(stretchedMs);
    const next = await stage.take(bob);
    expect(stage.writers()).toEqual(["bob", "bob", "alice"]);
    await stage.wait(alice.release(grant));
    expect(stage.writers()).toEqual(["bob", "bob", "free"]);
    // Bob's renewals read the third store's content, and then heal it.
    for (let renewals = 0; renewals < 2; renewals += 1) {
      await stage.world.advance(100);
      expect(await stage.renew(bob, next)).toBe(true);
    }
    await stage.world.settle();
    expect(stage.writers()).toEqual(["bob", "bob", "bob"]);
  });

  test("frees every store even if it is unknown whether the last renewal was written", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice);
    await stage.world.advance(100);
    for (const medium of stage.media) medium.stall("answers");
    await stage.renew(alice, grant);
    for (const medium of stage.media) medium.resume();
    await stage.wait(alice.release(grant));
    await stage.world.settle();
    expect(stage.writers()).toEqual(["free", "free", "free"]);
  });
});

describe("several contenders", () => {
  test("with one vote each resolve the tie, and one soon acquires the lease", async () => {
    const stage = new Stage();
    const names = ["alice", "bob", "carol"];
    const providers = await Promise.all(names.map((name) => stage.open(name)));
    // Each reaches a different store first.
    stage.media.forEach((medium, store) => (medium.latencyMs = { request: 1 + store, answer: 1 }));
    const outcomes = await Promise.all(providers.map((provider) => stage.attempt(provider)));
    expect(outcomes.filter(({ kind }) => kind === "granted")).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === "held")).toHaveLength(2);
    expect(stage.world.clock.monotonicMs()).toBeLessThan(200);
  });

  test("are not blocked by a record that a crashed one left at a minority", async () => {
    const stage = new Stage();
    const bob = await stage.open("bob");
    stage.media[1]!.plant(register, encodeRecord(held("crashed", 9n)));
    const grant = await stage.take(bob);
    expect([grant.token, stage.world.clock.monotonicMs()]).toEqual([10n, 0]);
  });

  test("wait for the end of records that crashed ones left at a majority", async () => {
    const stage = new Stage();
    const bob = await stage.open("bob");
    stage.media[0]!.plant(register, encodeRecord(held("one", 3n)));
    stage.media[1]!.plant(register, encodeRecord(held("two", 4n)));
    expect((await stage.attempt(bob)).kind).toMatch(/held|failed/);
    await stage.world.advance(stretchedMs);
    expect((await stage.take(bob)).token).toBe(5n);
  });

  test("cost the same however many there have been", async () => {
    const stage = new Stage();
    const cost: number[] = [];
    for (let index = 0; index < 40; index += 1) {
      const provider = await stage.open(`p${index}`);
      const before = stage.media[0]!.performed.read + stage.media[0]!.performed.replace;
      await provider.release(await stage.take(provider));
      await stage.world.settle();
      cost.push(stage.media[0]!.performed.read + stage.media[0]!.performed.replace - before);
      await provider.close();
    }
    expect(Math.max(...cost.slice(1))).toBe(cost[1]);
    expect(stage.media[0]!.cells(register)).toHaveLength(1);
  });
});

const held = (writer: string, epoch: bigint): DeltaRecord => ({
  resource: "r",
  epoch,
  number: 1n,
  writer,
  nonce: 1,
  state: "held",
  leaseMs: ttlMs,
  delayMs: 50,
});

describe("content that is not a record of this resource", () => {
  const line = encodeRecord(held("alice.1", 1n));
  const damaged = line.slice();
  damaged[40]! ^= 1;
  test.each([
    ["foreign", new TextEncoder().encode("hello"), "STORE_FOREIGN"],
    ["damaged", damaged, "STORE_CORRUPT"],
    ["another resource's", encodeRecord({ ...held("x", 1n), resource: "s" }), "STORE_CORRUPT"],
  ])("(%s) never counts as free and is never overwritten", async (_, content, code) => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    stage.media[1]!.plant(register, content);
    const grant = await stage.take(alice);
    await stage.world.advance(100);
    expect(await stage.renew(alice, grant)).toBe(true);
    await stage.wait(alice.release(grant));
    expect(stage.media[1]!.cells(register)).toEqual([content]);
    stage.media[2]!.plant(register, content);
    const outcome = await stage.attempt(alice);
    expect(outcome).toMatchObject({ kind: "failed", error: { code } });
    expect(await stage.wait(alice.query("r", 100))).toEqual({ state: "unknown" });
    expect(stage.media[2]!.cells(register)).toEqual([content]);
  });
});

describe("stores that fail", () => {
  test("with a permanent error, and leave no majority, end an attempt with that error", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    for (const medium of stage.media.slice(1)) medium.failing = new LeaseholdError("STORE_READ_ONLY");
    expect(await stage.attempt(alice)).toMatchObject({ error: { code: "STORE_READ_ONLY" } });
  });

  test("with a transient error, or silent, end an attempt with NO_QUORUM and their errors", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    stage.media[0]!.failing = new LeaseholdError("STORE_UNAVAILABLE", "it restarts");
    stage.media[1]!.stall("requests");
    const outcome = await stage.attempt(alice);
    expect(outcome).toMatchObject({ kind: "failed", error: { code: "NO_QUORUM" } });
    expect((outcome as { error: Error }).error.message).toContain("it restarts");
    expect(stage.writers()).toEqual(["-", "-", "-"]);
  });

  test("withdraw a write that found no majority", async () => {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    for (const medium of stage.media) medium.latencyMs = { request: 5, answer: 0 };
    const attempt = stage.attempt(alice, ttlMs, 60);
    await stage.world.advance(0);
    await stage.world.advance(6);
    for (const medium of stage.media.slice(1)) medium.stall("requests");
    expect((await attempt).kind).toBe("failed");
    expect(stage.writers()).toEqual(["free", "-", "-"]);
    for (const medium of stage.media.slice(1)) medium.crash();
    expect((await stage.take(bob)).token).toBe(2n);
  });
});
