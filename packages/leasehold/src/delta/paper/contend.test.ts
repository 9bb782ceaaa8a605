import { describe, expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  recordOf,
  resumption,
  seenOf,
  slotted,
} from "../../../../../test/support/paper-bench.js";
import { encodeRecord } from "../record/codec.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import type { StoreAnswer } from "../store.js";
import { claim, contend } from "./contend.js";
import { renewND } from "./renew.js";
import type { Seen } from "./site.js";
import { type Held, Idle } from "./states.js";

const x = leaseRegister("r");

function plant(bench: PaperBench, fields: Partial<DeltaRecord>, slot = "somebody"): void {
  for (const [store, medium] of bench.media.entries())
    medium.plant(x, encodeRecord(recordOf(fields)), bench.farm.kindOf(store) === "slotted" ? slot : "");
}

async function timeOfContend(bench: PaperBench, own: { leaseMs: number; delayMs: number }): Promise<number> {
  const player = bench.player("alice", { delayMs: own.delayMs });
  const begunMs = bench.nowMs;
  const state = await bench.wait(player.run(contend(player.site({ leaseMs: own.leaseMs }), new Idle())));
  expect(state.state).toBe("hold");
  return bench.nowMs - begunMs;
}

describe("Fig. 2", () => {
  test("line 5: waits for the Δ + 6δ of the record, not for its own", async () => {
    const take = async () => {
      const bench = new PaperBench(slotted);
      plant(bench, { leaseMs: 3_000, delayMs: 80 });
      return timeOfContend(bench, { leaseMs: 500, delayMs: 20 });
    };
    expect(await take()).toBe(3_000 + 6 * 80 + 2 * 80);
    await duringFaults({ ownWait: true }, async () => expect(await take()).toBe(500 + 6 * 20 + 2 * 80));
  });

  test("line 5: uses its own δ if that is greater", async () => {
    const bench = new PaperBench(slotted);
    plant(bench, { leaseMs: 1_000, delayMs: 20 });
    expect(await timeOfContend(bench, { leaseMs: 500, delayMs: 80 })).toBe(1_000 + 6 * 80 + 2 * 80);
  });

  test("line 5: waits are stretched for clocks that are off by ρ", () => {
    const site = new PaperBench(slotted).player("alice", { clockRateError: 0.01 }).site();
    expect(site.waitMs(recordOf())).toBeCloseTo(((leaseMs + 6 * delayMs) * 1.01) / 0.99);
    expect(site.pauseMs(seenOf([recordOf()]))).toBeCloseTo((2 * delayMs * 1.01) / 0.99);
  });

  test("line 7: restarts the wait for a record that has changed meanwhile", async () => {
    const bench = new PaperBench(slotted);
    plant(bench, { number: 1n, nonce: 1 });
    const alice = bench.player("alice");
    const contending = alice.run(contend(alice.site(), new Idle()));
    await bench.world.advance(1_500);
    plant(bench, { number: 2n, nonce: 2 });
    const state = await bench.wait(contending);
    expect(state.state).toBe("hold");
    // Seen after the first wait, and waited for from then on.
    expect(bench.nowMs).toBe(2 * (leaseMs + 6 * delayMs) + 2 * delayMs);
  });

  test("line 8: chooses a timestamp greater than the one read, and the next epoch", async () => {
    const bench = new PaperBench(atomic);
    plant(bench, { number: 17n, epoch: 4n, state: "free" });
    const alice = bench.player("alice");
    const state = await bench.wait(alice.run(contend(alice.site(), new Idle())));
    expect(state).toMatchObject({ record: { number: 18n, epoch: 5n, writer: "alice" } });
  });

  test("line 10: pauses for 2δ before it reads again", async () => {
    const bench = new PaperBench(atomic);
    expect(await timeOfContend(bench, { leaseMs, delayMs })).toBe(2 * delayMs);
    await duringFaults({ noPause: true }, async () =>
      expect(await timeOfContend(new PaperBench(atomic), { leaseMs, delayMs })).toBe(0),
    );
  });

  test("lines 11 and 12: a contender that finds another's record after the pause has lost, and waits again", async () => {
    const take = async () => {
      const bench = new PaperBench(slotted);
      const alice = bench.player("alice");
      const contending = alice.run(contend(alice.site(), new Idle()));
      // In the middle of the pause.
      await bench.world.advance(leaseMs + 6 * delayMs + delayMs);
      plant(bench, { number: 2n, epoch: 9n << 32n });
      await bench.wait(contending);
      return bench.nowMs;
    };
    const onceMs = leaseMs + 8 * delayMs;
    expect(await take()).toBeGreaterThanOrEqual(2 * onceMs);
    await duringFaults({ noReRead: true }, async () => expect(await take()).toBe(onceMs));
  });

  test("of any number of contenders one acquires it, and the others wait for its end", async () => {
    const bench = new PaperBench(slotted);
    // Ensures that all of them read before any of them has written.
    for (const medium of bench.media) medium.latencyMs = { request: 5, answer: 5 };
    const held: Held[] = [];
    for (const name of ["a", "b", "c", "d"]) {
      const player = bench.player(name);
      const contending = player.run(contend(player.site(), new Idle()));
      void contending.then((state) => state.state === "hold" && held.push(state));
    }
    await bench.world.advance(2 * (leaseMs + 6 * delayMs));
    expect(held.map(({ record }) => record.writer)).toEqual(["d"]);
    expect(bench.media.map(({ performed }) => performed.put)).toEqual([4, 4, 4]);
  });

  test("the hold counts from before the write", async () => {
    const bench = new PaperBench(atomic);
    for (const medium of bench.media) medium.latencyMs = { request: 10, answer: 10 };
    const alice = bench.player("alice");
    const state = await bench.wait(alice.run(contend(alice.site(), new Idle())));
    // A read of 20 ms, a write of 20 ms, the pause, and another read.
    expect(bench.nowMs).toBe(20 + 20 + 2 * delayMs + 20);
    expect(state.state === "hold" && state.remainingMs(bench.now())).toBe(leaseMs - (bench.nowMs - 20));
  });
});

describe("a free register", () => {
  test("is claimed without the first wait where all stores compare and set", async () => {
    const bench = new PaperBench(atomic);
    plant(bench, { state: "free" });
    expect(await timeOfContend(bench, { leaseMs, delayMs })).toBe(2 * delayMs);
  });

  test("is claimed after the first wait where one store can only write", async () => {
    for (const kinds of [slotted, ["slotted", "atomic", "atomic"], ["slotted"]] as const) {
      const bench = new PaperBench(kinds);
      plant(bench, { state: "free" });
      expect(await timeOfContend(bench, { leaseMs, delayMs })).toBe(leaseMs + 8 * delayMs);
    }
    await duringFaults({ freeShortcutWithoutCompareAndSet: true }, async () =>
      expect(await timeOfContend(new PaperBench(slotted), { leaseMs, delayMs })).toBe(2 * delayMs),
    );
  });
});

describe("the watch on δ", () => {
  const begun = { monotonicMs: 0, wallMs: 0 };
  const seen: Seen = {
    ...seenOf([], []),
    begun,
    ended: { monotonicMs: 10, wallMs: 10 },
  };
  const answers = (bench: PaperBench): StoreAnswer[] =>
    bench.media.map(({ id }) => ({ kind: "written", id }));

  test.each([
    [2 * delayMs - 1, "delay"],
    [2 * delayMs, "refused"],
  ])("a write that ends %d ms after the last read began: %s", (endedMs, then) => {
    const bench = new PaperBench(slotted);
    const protocol = claim(bench.player("alice").site(), seen);
    expect(protocol.next().value).toMatchObject({ kind: "ask" });
    const { value, done } = protocol.next(resumption(endedMs, answers(bench)));
    expect(done === true ? (value as Idle).because : (value as { kind: string }).kind).toBe(then);
  });

  test("a second read that took δ proves that the bound does not hold: the claim has failed", async () => {
    for (const [tookMs, because] of [
      [delayMs - 1, undefined],
      [delayMs, "refused"],
    ] as const) {
      const bench = new PaperBench(slotted);
      const protocol = claim(bench.player("alice").site(), seen);
      protocol.next();
      protocol.next(resumption(20, answers(bench)));
      const { value } = protocol.next(resumption(120));
      if (value === undefined || !("requests" in value)) throw new Error("no second look");
      const { value: ask } = { value };
      expect(ask.requests.every((request) => request?.op === "read")).toBe(true);
      const mine = bench.player("alice").site().recordAfter(seen);
      const cells = bench.media.map(({ id }): StoreAnswer => ({
        kind: "cells",
        id,
        cells: [encodeRecord(mine)],
      }));
      const end = protocol.next(resumption(120 + tookMs, cells)).value as Held | Idle;
      expect(end.state === "idle" ? end.because : undefined).toBe(because);
    }
  });
});

describe("a failed claim", () => {
  test("frees its record where stores compare and set, and only that", async () => {
    const bench = new PaperBench(atomic);
    const alice = bench.player("alice");
    const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    const contending = alice.run(contend(alice.site(), new Idle()), cancellation);
    await bench.world.advance(delayMs);
    bench.media[0]!.plant(x, encodeRecord(recordOf({ number: 5n })));
    cancellation.cancelled = true;
    cancellation.onCancel?.();
    expect(await bench.wait(contending)).toMatchObject({ state: "idle", because: "cancelled" });
    await bench.world.advance(1);
    const states = bench.media.map((medium) => new TextDecoder().decode(medium.cells(x)[0]));
    expect(states.map((text) => /"state":"(\w+)"/.exec(text)?.[1])).toEqual(["held", "free", "free"]);
  });

  test("leaves its record where they do not, because the freeing record could hide a winner's", async () => {
    const bench = new PaperBench(slotted);
    const alice = bench.player("alice");
    const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    const contending = alice.run(contend(alice.site(), new Idle()), cancellation);
    await bench.world.advance(leaseMs + 7 * delayMs);
    cancellation.cancelled = true;
    cancellation.onCancel?.();
    expect((await bench.wait(contending)).state).toBe("idle");
    expect(bench.media.map(({ performed }) => performed.put)).toEqual([1, 1, 1]);
  });

  test("writes nothing when its wait is cancelled, and ends at once", async () => {
    const bench = new PaperBench(slotted);
    const alice = bench.player("alice");
    const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    const contending = alice.run(contend(alice.site(), new Idle()), cancellation);
    await bench.world.advance(100);
    cancellation.cancelled = true;
    cancellation.onCancel?.();
    expect((await bench.wait(contending)).state).toBe("idle");
    expect(bench.nowMs).toBe(100);
    expect(bench.media.map(({ performed }) => performed.put)).toEqual([0, 0, 0]);
  });
});

test("a holder that renews is never replaced, and one that stops is, Δ + 6δ after its last record", async () => {
  const bench = new PaperBench(slotted);
  const [alice, bob] = [bench.player("alice"), bench.player("bob")];
  const site = alice.site();
  let held = (await bench.wait(alice.run(contend(site, new Idle())))) as Held;
  const contending = bob.run(contend(bob.site(), new Idle()));
  for (let renewals = 0; renewals < 6; renewals += 1) {
    await bench.world.advance(leaseMs / 2);
    held = (await bench.wait(alice.run(renewND(site, held)))) as Held;
    expect(held.state).toBe("hold");
  }
  const lastMs = bench.nowMs;
  await bench.wait(contending);
  expect(bench.nowMs - lastMs).toBeGreaterThanOrEqual(leaseMs + 6 * delayMs);
  expect(held.remainingMs(bench.now())).toBe(0);
});
