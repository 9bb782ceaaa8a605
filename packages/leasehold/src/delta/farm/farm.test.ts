import { describe, expect, test } from "vitest";
import { delayMs, leaseMsMax, refused, Stage } from "../../../../../test/support/farm-stage.js";
import { decodeFarmCell, encodeFarmCell } from "./farm-cell.js";
import { planFarm } from "./farm-plan.js";
import { LazyStore } from "../../stores/lazy-store.js";
import { type MemoryMedium, MemoryStore } from "../memory/memory-store.js";
import { openFarm } from "../provider/open.js";
import type { DeltaProvider } from "../provider/provider.js";
import { farmRegister } from "../store.js";

describe("a farm", () => {
  test("is founded at the first use, and found at every later one", async () => {
    const stage = new Stage();
    await Promise.all([stage.open("alice"), stage.open("bob")]);
    const ids = stage.media.map(({ id }) => id);
    const farm = ids.toSorted();
    expect(stage.cells()).toEqual(
      ids.map((id) => ({
        id,
        state: "ready",
        generation: 0,
        farm,
        leaseMsMax,
        delayMsMax: delayMs,
        epochFloor: 0n,
        epochMax: 1n << 20n,
        since: 0,
        waitedMs: 0,
      })),
    );
    const before = stage.media.map(({ performed }) => performed.replace);
    await stage.open("carol");
    expect(stage.media.map(({ performed }) => performed.replace)).toEqual(before);
  });

  test("cannot be founded while a store is silent, but can be joined", async () => {
    const stage = new Stage();
    stage.media[1]!.stall("requests");
    expect(await refused(stage.open("alice"))).toMatch(/^NO_QUORUM: .*the first use needs all stores/);
    expect(stage.cells()).toEqual([undefined, undefined, undefined]);
    stage.media[1]!.crash();
    await stage.open("alice");
    stage.media[1]!.stall("requests");
    const bob = await stage.open("bob");
    expect((await stage.take(bob)).token).toBe(1n);
  });

  test("whose founder stopped halfway is planned with all its stores, and none of them is a newcomer", async () => {
    const stage = new Stage();
    await stage.open("alice");
    const [first] = stage.media.map((medium) => medium.cells(farmRegister)[0]!);
    expect(
      planFarm(
        ["0", "1", "2"],
        stage.media.map(({ id }, index) => ({
          kind: "answered",
          id,
          cell: index === 0 ? decodeFarmCell(first!) : undefined,
        })),
      ),
    ).toMatchObject({ members: [0, 1, 2], newcomers: [] });
  });

  test("records longer leases before they are acquired, and never shorter ones", async () => {
    const stage = new Stage();
    await stage.open("alice");
    await stage.open("bob", { leaseMsMax: 9_000, delayMs: 70 });
    await stage.open("carol", { leaseMsMax: 1_000 });
    for (const cell of stage.cells()) expect(cell).toMatchObject({ leaseMsMax: 9_000, delayMsMax: 70 });
  });

  test("with a store of foreign content continues without it, and does not touch it", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const foreign = new TextEncoder().encode("not yours");
    stage.media[2]!.plant(farmRegister, foreign);
    const bob = await stage.open("bob");
    expect((await stage.take(bob)).token).toBe(1n);
    expect(stage.media[2]!.cells(farmRegister)).toEqual([foreign]);
    stage.media[1]!.plant(farmRegister, foreign);
    expect(await refused(stage.open("carol"))).toMatch(/^STORE_FOREIGN/);
    expect(alice.guarantees.ground).toBe("delta");
  });

  test("of stores that can only write is founded and found, too", async () => {
    const stage = new Stage(3, { kind: "slotted" });
    await stage.open("alice");
    await stage.open("bob");
    for (const cell of stage.cells()) expect(cell).toMatchObject({ state: "ready", generation: 0 });
  });
});

describe("another list of stores is refused (CONFIG_MISMATCH)", () => {
  test("when it has fewer, more or other stores, or one of them twice", async () => {
    const stage = new Stage(3);
    const other = new Stage(3);
    await stage.open("alice");
    await other.open("alice");
    const [a, b, c] = stage.media as [MemoryMedium, MemoryMedium, MemoryMedium];
    const [x, y] = other.media as [MemoryMedium, MemoryMedium];
    const empty = new Stage(2).media;
    expect(await refused(stage.openOnly([a]))).toMatch(
      /^CONFIG_MISMATCH: .*farm has 3 stores, and 1 were given/,
    );
    expect(await refused(stage.openOnly([a, b, c, ...empty]))).toMatch(/^CONFIG_MISMATCH.*farm has 3 stores/);
    expect(await refused(stage.openOnly([a, b, x]))).toMatch(/^CONFIG_MISMATCH: .*different farms/);
    expect(await refused(stage.openOnly([a, x, y]))).toMatch(/^CONFIG_MISMATCH/);
    expect(await refused(stage.openOnly([a, b, b]))).toMatch(/^CONFIG_MISMATCH: .*twice/);
    expect(await refused(stage.openOnly([a, ...empty]))).toMatch(/^CONFIG_MISMATCH: .*half of the stores/);
    for (const medium of empty) expect(medium.cells(farmRegister)).toEqual([]);
    await stage.open("bob");
  });

  test("in the middle of a run, too, once the last look is too old", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice, leaseMsMax);
    await stage.world.advance(10);
    for (const [store, cell] of stage.cells().entries()) {
      const other = { ...cell!, farm: [cell!.id, `other${store}`, "another"].toSorted() };
      stage.media[store]!.plant(farmRegister, encodeFarmCell(other));
    }
    expect(await stage.wait(alice.renew(grant, leaseMsMax))).toBe(true);
    await stage.world.advance(leaseMsMax);
    expect(await stage.attempt(alice)).toMatchObject({
      kind: "failed",
      error: { code: "CONFIG_MISMATCH" },
    });
    expect(await stage.wait(alice.query("r", 100))).toEqual({ state: "unknown" });
  });

  test("when a store is a copy of another's contents, which is taken for an empty one", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const copied = stage.media[0]!.cells(farmRegister)[0]!;
    stage.media[2]!.forget();
    stage.media[2]!.plant(farmRegister, copied);
    await stage.open("bob");
    expect(await stage.wait(alice.query("r", 100))).toMatchObject({ state: "free" });
    const { members } = await stage.wait((await stage.open("carol")).inspection.explain("r", 100));
    expect(members.map(({ state }) => state)).toEqual(["ready", "ready", "recovering"]);
  });
});

test.each([
  [{ delayMs: 0 }, /δ must be more than 0/],
  [{ leaseMsMax: 100 }, /at least 3 times δ/],
  [{ leaseMsMax: Infinity }, /at least 3 times δ/],
  [{ clockRateError: 0.5 }, /clockRateError/],
])("invalid settings are refused: %o", async (options, why) => {
  expect(await refused(new Stage().open("alice", options))).toMatch(why);
});

describe("a farm of stores that can only write", () => {
  const untilTaken = async (stage: Stage, provider: DeltaProvider, ttlMs: number) => {
    for (let tries = 0; tries < 100; tries += 1) {
      const outcome = await stage.attempt(provider, ttlMs);
      if (outcome.kind === "granted") return outcome.grant;
      await stage.world.advance(delayMs);
    }
    throw new Error("nobody gets it");
  };

  test("is opened with the founder's δ while a device that was never reached is away", async () => {
    const stage = new Stage(3, { kind: "slotted" });
    const wish = { delayMs: 70 };
    await stage.wait((await stage.open("founder", wish)).close());
    const [first, second, third] = stage.media as [MemoryMedium, MemoryMedium, MemoryMedium];
    const assumed = {
      ...new MemoryStore(third, "").traits,
      name: "away",
      kind: "slotted",
      delayMs: 2_000,
    } as const;
    const away = new LazyStore(assumed, stage.world.timers, () => new Promise(() => undefined));
    const stores = [...[first, second].map((medium) => new MemoryStore(medium, "bob.1")), away];
    const bob = await stage.wait(openFarm(stores, stage.world, { holder: "bob.1", leaseMsMax, ...wish }));
    expect((await untilTaken(stage, bob, 1_000)).remainingMs()).toBeGreaterThan(0);
    await bob.close();
  });

  test("is not opened with a longest lease that would expire before its first renewal", async () => {
    const stage = new Stage(3, { kind: "slotted" });
    const tooShort = stage.open("alice", { leaseMsMax: 11 * delayMs - 1 });
    expect(await refused(tooShort)).toMatch(
      /^INVALID_CONFIG: .* at least 11 times δ \(50 ms\), so 550 ms, and is 549 ms/,
    );
    // Nothing was founded: others may use the stores with valid settings.
    expect(stage.cells()).toEqual([undefined, undefined, undefined]);
    const bob = await stage.open("bob", { leaseMsMax: 11 * delayMs });
    expect(bob.guarantees).toMatchObject({ ttlMinMs: 11 * delayMs, ttlMaxMs: 11 * delayMs });
    const grant = await untilTaken(stage, bob, 11 * delayMs);
    for (let renewals = 0; renewals < 10; renewals += 1) {
      await stage.world.advance(Math.max(0, grant.remainingMs() - (2 * 11 * delayMs) / 3));
      expect(await stage.wait(bob.renew(grant, 11 * delayMs))).toBe(true);
    }
  });

  test("is checked without reading its cells while nothing is announced; announcements are noticed at once", async () => {
    const stage = new Stage(3, { kind: "slotted" });
    const alice = await stage.open("alice");
    const grant = await untilTaken(stage, alice, 1_000);
    // The looks after the farm's own announcements read the cells once more.
    for (let renewals = 0; renewals < 3; renewals += 1) {
      await stage.world.advance(300);
      expect(await stage.wait(alice.renew(grant, 1_000))).toBe(true);
    }
    const before = stage.media.map(({ performed, quiet }) => performed.read - quiet);
    for (let renewals = 0; renewals < 30; renewals += 1) {
      await stage.world.advance(300);
      expect(await stage.wait(alice.renew(grant, 1_000))).toBe(true);
    }
    // Every look and renewal read; none of them had to read cells.
    expect(stage.media.map(({ performed, quiet }) => performed.read - quiet)).toEqual(before);
    stage.media[2]!.forget();
    await stage.world.advance(300);
    expect(await stage.wait(alice.renew(grant, 1_000))).toBe(true);
    const { members } = await stage.wait(alice.inspection.explain("r", 100));
    expect(members.map(({ state }) => state)).toEqual(["ready", "ready", "recovering"]);
  });

  test("supports the shortest lease that it advertises, from the first renewal on", async () => {
    const stage = new Stage(3, { kind: "slotted" });
    const alice = await stage.open("alice");
    const ttlMs = alice.guarantees.ttlMinMs;
    expect(ttlMs).toBe(11 * delayMs);
    // Each operation takes nearly the time allowed.
    for (const medium of stage.media) medium.latencyMs = { request: 0.49 * delayMs, answer: 0.48 * delayMs };
    const grant = await untilTaken(stage, alice, ttlMs);
    for (let renewals = 0; renewals < 10; renewals += 1) {
      // Like the waist: when a third of the lease has passed since it was requested.
      await stage.world.advance(Math.max(0, grant.remainingMs() - (2 * ttlMs) / 3));
      expect(await stage.wait(alice.renew(grant, ttlMs))).toBe(true);
      expect(grant.remainingMs()).toBeGreaterThan(0);
    }
  });
});
