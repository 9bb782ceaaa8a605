import { describe, expect, test } from "vitest";
import {
  delayMs,
  firstWaitMs,
  leaseMsMax,
  recoveryMs,
  refused,
  Stage,
} from "../../../../../test/support/farm-stage.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Grant } from "../../lease/provider.js";
import { decodeRecord, encodeRecord } from "../record/codec.js";
import { encodeFarmCell } from "./farm-cell.js";
import type { MemoryMedium } from "../memory/memory-store.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { DeltaProvider } from "../provider/provider.js";
import { leaseRegister } from "../record/registers.js";
import { farmRegister } from "../store.js";

describe("a store that has forgotten", () => {
  /** Alice holds through the first two stores. The first forgets. Bob can reach it and the third. */
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
      expect((await stage.attempt(bob)).kind).toBe("failed");
      await stage.world.advance(100);
    }
    expect((await stage.attempt(bob)).kind).toBe("failed");
  });

  test("makes two hold if it counts at once (a planted mistake)", async () => {
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

  test("counts when they are over, in a new generation, and tokens keep rising", async () => {
    const { stage, bob, grant } = await forgotten();
    stage.media[1]!.failing = undefined;
    // The first look finds the other marker, the second reads it again; from then on the store counts.
    for (let looks = 0; looks < 2; looks += 1) await stage.attempt(bob);
    await stage.world.advance(recoveryMs);
    await stage.wait(bob.query("r", 100));
    await stage.world.settle();
    const farm = stage.media.map(({ id }) => id).toSorted();
    expect(stage.cells()).toMatchObject(
      [1, 1, 1].map((generation) => ({ state: "ready", generation, farm })),
    );
    // Only the two stores that do not know alice's tenure.
    stage.media[1]!.failing = new LeaseholdError("STORE_UNAVAILABLE");
    expect((await stage.take(bob)).token).toBeGreaterThan(grant.token);
  });

  test("is noticed by a running holder, which keeps holding through the others", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    const grant = await stage.take(alice);
    stage.media[0]!.forget();
    for (let renewals = 0; renewals < 30; renewals += 1) {
      await stage.world.advance(200);
      expect(await stage.wait(alice.renew(grant, 1_000))).toBe(true);
    }
    await stage.world.settle();
    expect(stage.cells()[0]).toMatchObject({ state: "ready", generation: 1 });
  });

  test("is not written by a contender that read it before", async () => {
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

  test("is refused when half of the stores have forgotten, because the holders are unknown", async () => {
    const stage = new Stage();
    await stage.open("alice");
    for (const medium of stage.media.slice(1)) medium.forget();
    expect(await refused(stage.open("bob"))).toMatch(/^CONFIG_MISMATCH: .*half of the stores have forgotten/);
  });
});

describe("a store that comes back", () => {
  test("twice, seen by one process each time, leaves two lists, which converge", async () => {
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
      for (let looks = 0; looks < 4; looks += 1) {
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

  test("counts again when the only list that had it lost to another of its generation", async () => {
    const settled = async () => {
      const stage = new Stage(5);
      const alice = await stage.open("alice");
      const last = stage.media[4]!;
      const others = stage.media.slice(0, 4).map(({ id }) => id);
      const plant = (store: number, farm: readonly string[], own: object = {}) =>
        stage.media[store]!.plant(
          farmRegister,
          encodeFarmCell({ ...before[store]!, generation: 1, farm: [...farm].toSorted(), ...own }),
        );
      const before = stage.cells();
      last.forget();
      const seenByMost = [...others, last.id];
      last.forget();
      const seenByOne = [...others, last.id];
      for (const store of [0, 1, 2]) plant(store, seenByMost);
      plant(3, seenByOne);
      plant(4, seenByOne, { id: last.id, since: 1 });
      for (let looks = 0; looks < 6; looks += 1) {
        await stage.wait(alice.query("r", 100));
        await stage.world.advance(recoveryMs);
      }
      return stage.cells().map((cell) => `${cell?.state} in ${cell?.generation}`);
    };
    expect(await settled()).toEqual(Array.from({ length: 5 }, () => "ready in 2"));
    await duringFaults({ tieLosersAreReplaced: true }, async () =>
      expect((await settled())[4]).toBe("ready in 1"),
    );
  });

  test("has its waiting time shared by all users: even those that never live so long get it back", async () => {
    const usersUntilReady = async () => {
      const stage = new Stage();
      await stage.wait((await stage.open("founder")).close());
      stage.media[0]!.forget();
      for (let users = 1; users < 40; users += 1) {
        const user = await stage.open(`user-${users}`);
        await stage.world.advance(300);
        await stage.wait(user.query("r", 100));
        await stage.wait(user.close());
        if (stage.cells()[0]?.state === "ready") return users;
      }
      return Infinity;
    };
    const users = await usersUntilReady();
    // Never sooner than for a user that stays.
    expect(users).toBeGreaterThanOrEqual(Math.floor(recoveryMs / 300));
    expect(users).toBeLessThan(2 * (recoveryMs / 300));
    await duringFaults({ waitIsForgotten: true }, async () => expect(await usersUntilReady()).toBe(Infinity));
  });

  test("costs a million tokens, and they stay below 2^53", async () => {
    const stage = new Stage();
    const alice = await stage.open("alice");
    for (let times = 1; times <= 3; times += 1) {
      stage.media[times - 1]!.forget();
      for (let looks = 0; looks < 8; looks += 1) {
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

test("with unbounded epochs, a planted mistake, may have had greater tokens than it counts with", async () => {
  const stage = new Stage();
  const alice = await stage.open("alice");
  await duringFaults({ epochsUnbounded: true }, async () => {
    const epoch = await freeRecordAt(stage, alice, stage.cells()[0]!.epochMax);
    const before = await stage.take(alice);
    expect(before.token).toBe(epoch + 1n);
    stage.media[0]!.forget();
    for (let looks = 0; looks < 8; looks += 1) {
      await stage.wait(alice.query("r", 100));
      await stage.world.advance(recoveryMs / 4);
    }
    const [first] = stage.cells();
    expect(first).toMatchObject({ state: "ready", generation: 1 });
    expect(first!.epochFloor).toBeLessThan(before.token);
  });
});

test("no lease uses an epoch that a majority has not allowed", async () => {
  const stage = new Stage();
  const alice = await stage.open("alice");
  const max = stage.cells()[0]!.epochMax;
  const epoch = await freeRecordAt(stage, alice, max);
  const outcome = await stage.attempt(alice);
  expect(outcome).toMatchObject({ kind: "failed", error: { code: "NO_QUORUM" } });
  await stage.world.advance(delayMs);
  await stage.attempt(alice);
  await stage.world.advance(delayMs);
  expect((await stage.take(alice)).token).toBe(epoch + 1n);
  for (const cell of stage.cells()) expect(cell!.epochMax).toBeGreaterThan(max);
});

/** As if the resource had been acquired this often. */
async function freeRecordAt(stage: Stage, provider: DeltaProvider, epoch: bigint) {
  await stage.wait(provider.release(await stage.take(provider)));
  const register = leaseRegister("r");
  const record = { ...decodeRecord(stage.media[0]!.cells(register)[0]!), epoch };
  for (const medium of stage.media) medium.plant(register, encodeRecord(record));
  return record.epoch;
}

describe("stores that forget when they restart", () => {
  test("have to wait at the first use, because they may have been in use before", async () => {
    const stage = new Stage(3, { durable: false });
    const alice = await stage.open("alice");
    const outcome = await stage.attempt(alice);
    expect(outcome).toMatchObject({ kind: "failed", error: { code: "NO_QUORUM" } });
    await stage.world.advance(firstWaitMs);
    expect((await stage.take(alice)).token).toBe(1n);
    expect((await stage.attempt(await stage.open("bob"))).kind).toBe("held");
  });
});
