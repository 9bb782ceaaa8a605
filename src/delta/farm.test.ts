import { describe, expect, test } from "vitest";
import { MemoryFarm } from "../../test/support/memory-farm.js";
import { LeaseholdError } from "../lease/errors.js";
import type { AttemptOutcome, Grant } from "../lease/provider.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { decodeRecord, encodeRecord } from "./codec.js";
import { decodeFarmCell, encodeFarmCell } from "./farm-cell.js";
import { planFarm } from "./farm-plan.js";
import { type MemoryMedium, type MemoryMediumOptions, MemoryStore } from "./memory-store.js";
import { type DeltaOptions, openFarm } from "./open.js";
import { duringFaults } from "./planted-faults.js";
import type { DeltaProvider } from "./provider.js";
import { leaseRegister } from "./registers.js";
import { farmRegister } from "./store.js";

const delayMs = 50;
const leaseMsMax = 2_000;
/** Until a store in the place of another counts: V + Δ + 7δ, stretched for clocks that are off by a tenth. */
const recoveryMs = Math.ceil(((2 * leaseMsMax + 7 * delayMs) * 1.1) / 0.9);
/** Until stores of a farm that is new count, if they may have forgotten another: there is no old list. */
const firstWaitMs = Math.ceil(((leaseMsMax + 7 * delayMs) * 1.1) / 0.9);

let seed = 0;

class Stage {
  // Stores of two stages must not draw the same markers.
  readonly world = new VirtualWorld({ seed: (seed += 1) });
  readonly farm: MemoryFarm;

  constructor(size = 3, media: Partial<MemoryMediumOptions> = {}) {
    this.farm = new MemoryFarm(this.world, size, { delayMs, ...media });
  }

  get media(): readonly MemoryMedium[] {
    return this.farm.media;
  }

  open(name: string, options: Partial<DeltaOptions> = {}): Promise<DeltaProvider> {
    return this.wait(this.farm.open(name, this.world, { leaseMsMax, ...options }));
  }

  openOnly(media: readonly MemoryMedium[], options: Partial<DeltaOptions> = {}): Promise<DeltaProvider> {
    const stores = media.map((medium) => new MemoryStore(medium, "other"));
    return this.wait(openFarm(stores, this.world, { holder: "other.1", leaseMsMax, ...options }));
  }

  async wait<T>(promise: Promise<T>): Promise<T> {
    const seen = { isSettled: false };
    const settle = () => (seen.isSettled = true);
    promise.then(settle, settle);
    await this.world.settle();
    for (let passedMs = 0; !seen.isSettled && passedMs < 10_000; passedMs++) await this.world.advance(1);
    return promise;
  }

  attempt(provider: DeltaProvider, ttlMs = 1_000): Promise<AttemptOutcome> {
    const request = { resource: "r", ttlMs, timeoutMs: 500, contended: false, waiting: true };
    return this.wait(provider.attempt(request));
  }

  async take(provider: DeltaProvider, ttlMs?: number): Promise<Grant> {
    const outcome = await this.attempt(provider, ttlMs);
    if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    return outcome.grant;
  }

  cells() {
    return this.media.map((medium) => medium.cells(farmRegister).map(decodeFarmCell)[0]);
  }
}

const refused = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof LeaseholdError ? `${error.code}: ${error.message}` : error;
};

describe("a farm", () => {
  test("is founded at the first use, and found at every other", async () => {
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

  test("cannot be founded while a store is silent, and can be joined then", async () => {
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

  test("whose founder stopped halfway is completed by the next", async () => {
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

  test("learns of longer leases before they are taken, and never of shorter ones", async () => {
    const stage = new Stage();
    await stage.open("alice");
    await stage.open("bob", { leaseMsMax: 9_000, delayMs: 70 });
    await stage.open("carol", { leaseMsMax: 1_000 });
    for (const cell of stage.cells()) expect(cell).toMatchObject({ leaseMsMax: 9_000, delayMsMax: 70 });
  });

  test("with a store that holds something foreign goes on without it, and leaves it alone", async () => {
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
  test("fewer, more, others, and one twice", async () => {
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

  test("also in the middle of a run, from when what was last seen of the farm is too old", async () => {
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
      kind: "unanswered",
      error: { code: "CONFIG_MISMATCH" },
    });
    expect(await stage.wait(alice.query("r", 100))).toEqual({ state: "unknown" });
  });

  test("a store that is a copy of another's contents is taken for an empty one", async () => {
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

describe("a store that has forgotten", () => {
  /** Alice holds by the first two stores; the first forgets; bob can reach it and the third. */
  async function forgotten(): Promise<{ stage: Stage; bob: DeltaProvider; grant: Grant }> {
    const stage = new Stage();
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    stage.media[2]!.failing = new LeaseholdError("STORE_UNAVAILABLE");
    const grant = await stage.take(alice, leaseMsMax);
    stage.media[2]!.failing = undefined;
    stage.media[1]!.failing = new LeaseholdError("STORE_UNAVAILABLE");
    stage.media[0]!.forget();
    return { stage, bob, grant };
  }

  test("does not count until every lease that it may have known is over", async () => {
    const { stage, bob, grant } = await forgotten();
    while (grant.remainingMs() > 0) {
      expect((await stage.attempt(bob)).kind).toBe("unanswered");
      await stage.world.advance(100);
    }
    expect((await stage.attempt(bob)).kind).toBe("unanswered");
  });

  test("(a planted mistake: counted at once, two hold)", async () => {
    const { stage, bob, grant } = await forgotten();
    await duringFaults({ forgottenStoreCounts: true }, async () => {
      stage.media[1]!.failing = undefined;
      await stage.attempt(bob);
      await stage.world.advance(100);
      await stage.wait(bob.query("r", 100));
      stage.media[1]!.failing = new LeaseholdError("STORE_UNAVAILABLE");
      expect((await stage.attempt(bob)).kind).toBe("granted");
      expect(grant.remainingMs()).toBeGreaterThan(0);
    });
  });

  test("counts then, in a new generation, and the tokens go on rising", async () => {
    const { stage, bob, grant } = await forgotten();
    stage.media[1]!.failing = undefined;
    // The first finds the other marker, the second looks closer; from then on it counts.
    for (let looks = 0; looks < 2; looks++) await stage.attempt(bob);
    await stage.world.advance(recoveryMs);
    await stage.wait(bob.query("r", 100));
    await stage.world.settle();
    const farm = stage.media.map(({ id }) => id).toSorted();
    expect(stage.cells()).toMatchObject(
      [1, 1, 1].map((generation) => ({ state: "ready", generation, farm })),
    );
    // Only the two that know nothing of alice's tenure.
    stage.media[1]!.failing = new LeaseholdError("STORE_UNAVAILABLE");
    expect((await stage.take(bob)).token).toBeGreaterThan(grant.token);
  });

  test("is noticed by a holder in the middle of its run, which holds on by the others", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice);
    stage.media[0]!.forget();
    for (let renewals = 0; renewals < 30; renewals++) {
      await stage.world.advance(200);
      expect(await stage.wait(alice.renew(grant, 1_000))).toBe(true);
    }
    await stage.world.settle();
    expect(stage.cells()[0]).toMatchObject({ state: "ready", generation: 1 });
  });

  test("is not written by whoever read it before", async () => {
    const stage = new Stage(1);
    await stage.open("alice");
    const [medium] = stage.media as [MemoryMedium];
    const { id } = medium;
    medium.forget();
    const next = new Uint8Array([1]);
    const answer = await medium.perform({ op: "replace", register: "r", id, expected: undefined, next }, "");
    expect(answer).toEqual({ kind: "conflict", id: medium.id, cells: [] });
    expect(medium.cells("r")).toEqual([]);
  });

  test("when half of them have, is refused: nobody knows what was held", async () => {
    const stage = new Stage();
    await stage.open("alice");
    for (const medium of stage.media.slice(1)) medium.forget();
    expect(await refused(stage.open("bob"))).toMatch(/^CONFIG_MISMATCH: .*half of the stores have forgotten/);
  });
});

describe("a store that comes back", () => {
  test("twice, seen by one process each time: the two lists come to one by themselves", async () => {
    const settled = async () => {
      const stage = new Stage();
      const alice = await stage.open("alice");
      const [a, b, c] = stage.media as [MemoryMedium, MemoryMedium, MemoryMedium];
      const list = (id: string) => [a.id, b.id, id].toSorted();
      const [inA, inB] = stage.cells();
      c.forget();
      const once = { ...inA!, generation: 1, farm: list(c.id) };
      c.forget();
      const twice = { ...inB!, generation: 1, farm: list(c.id) };
      a.plant(farmRegister, encodeFarmCell(once));
      b.plant(farmRegister, encodeFarmCell(twice));
      const error = await refused(stage.open("bob"));
      if (typeof error === "string") return error;
      await stage.world.advance(recoveryMs);
      for (let looks = 0; looks < 4; looks++) {
        await stage.wait(alice.query("r", 100));
        await stage.world.advance(recoveryMs);
      }
      const cells = stage.cells();
      return new Set(cells.map((cell) => `${cell?.generation} ${cell?.farm.join()} ${cell?.state}`)).size;
    };
    expect(await settled()).toBe(1);
    await duringFaults({ tiesAreRefused: true }, async () =>
      expect(await settled()).toMatch(/^CONFIG_MISMATCH/),
    );
  });

  test("is waited for by all together: users that never live so long get it back, one after the other", async () => {
    const usersUntilReady = async () => {
      const stage = new Stage();
      await stage.wait((await stage.open("founder")).close());
      stage.media[0]!.forget();
      for (let users = 1; users < 40; users++) {
        const user = await stage.open(`user-${users}`);
        await stage.world.advance(300);
        await stage.wait(user.query("r", 100));
        await stage.wait(user.close());
        if (stage.cells()[0]?.state === "ready") return users;
      }
      return Infinity;
    };
    const users = await usersUntilReady();
    // Never sooner than one that lives on would have it.
    expect(users).toBeGreaterThanOrEqual(Math.floor(recoveryMs / 300));
    expect(users).toBeLessThan(2 * (recoveryMs / 300));
    await duringFaults({ waitIsForgotten: true }, async () => expect(await usersUntilReady()).toBe(Infinity));
  });

  test("costs tokens a million, and they stay below 2^53", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    for (let times = 1; times <= 3; times++) {
      stage.media[times - 1]!.forget();
      for (let looks = 0; looks < 8; looks++) {
        await stage.wait(alice.query("r", 100));
        await stage.world.advance(recoveryMs / 4);
      }
      expect(stage.cells().map((cell) => [cell?.state, cell?.generation])).toEqual(
        Array.from({ length: 3 }, () => ["ready", times]),
      );
    }
    const { token } = await stage.take(alice);
    expect(token).toBeGreaterThan(1n << 20n);
    expect(token).toBeLessThan(1n << 23n);
  });
});

test("(a planted mistake: epochs without a bound, and a store that forgets has known greater tokens than what it counts as)", async () => {
  const stage = new Stage();
  const alice = await stage.open("alice");
  await duringFaults({ epochsUnbounded: true }, async () => {
    const epoch = await freeRecordAt(stage, alice, stage.cells()[0]!.epochMax);
    const before = await stage.take(alice);
    expect(before.token).toBe(epoch + 1n);
    stage.media[0]!.forget();
    for (let looks = 0; looks < 8; looks++) {
      await stage.wait(alice.query("r", 100));
      await stage.world.advance(recoveryMs / 4);
    }
    const [first] = stage.cells();
    expect(first).toMatchObject({ state: "ready", generation: 1 });
    expect(first!.epochFloor).toBeLessThan(before.token);
  });
});

test("no lease takes an epoch that a majority has not been told of", async () => {
  const stage = new Stage();
  const alice = await stage.open("alice");
  const max = stage.cells()[0]!.epochMax;
  const epoch = await freeRecordAt(stage, alice, max);
  const outcome = await stage.attempt(alice);
  expect(outcome).toMatchObject({ kind: "unanswered", error: { code: "NO_QUORUM" } });
  await stage.world.advance(delayMs);
  await stage.attempt(alice);
  await stage.world.advance(delayMs);
  expect((await stage.take(alice)).token).toBe(epoch + 1n);
  for (const cell of stage.cells()) expect(cell!.epochMax).toBeGreaterThan(max);
});

/** As if the resource had been taken so often. */
async function freeRecordAt(stage: Stage, provider: DeltaProvider, epoch: bigint) {
  await stage.wait(provider.release(await stage.take(provider)));
  const register = leaseRegister("r");
  const record = { ...decodeRecord(stage.media[0]!.cells(register)[0]!), epoch };
  for (const medium of stage.media) medium.plant(register, encodeRecord(record));
  return record.epoch;
}

describe("stores that forget when they restart", () => {
  test("are waited for at the first use, as they may have been in use before", async () => {
    const stage = new Stage(3, { durable: false });
    const alice = await stage.open("alice");
    const outcome = await stage.attempt(alice);
    expect(outcome).toMatchObject({ kind: "unanswered", error: { code: "NO_QUORUM" } });
    await stage.world.advance(firstWaitMs);
    expect((await stage.take(alice)).token).toBe(1n);
    expect((await stage.attempt(await stage.open("bob"))).kind).toBe("held");
  });
});

test.each([
  [{ delayMs: 0 }, /δ must be more than 0/],
  [{ leaseMsMax: 100 }, /at least three times δ/],
  [{ leaseMsMax: Infinity }, /at least three times δ/],
  [{ clockRateError: 0.5 }, /clockRateError/],
])("settings that make no sense are refused: %o", async (options, why) => {
  expect(await refused(new Stage().open("alice", options))).toMatch(why);
});
