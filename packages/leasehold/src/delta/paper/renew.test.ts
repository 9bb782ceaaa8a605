import { describe, expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  recordOf,
  resumption,
  slotted,
} from "../../../../../test/support/paper-bench.js";
import { encodeRecord } from "../record/codec.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import { leaseRegister } from "../record/registers.js";
import { claim, contend } from "./contend.js";
import { release, renewEventuallyND, renewND } from "./renew.js";
import type { Seen } from "./site.js";
import { Held, Idle } from "./states.js";

const x = leaseRegister("r");

async function stage(kinds: typeof slotted | typeof atomic) {
  const bench = new PaperBench(kinds);
  const alice = bench.player("alice");
  const site = alice.site();
  const held = (await bench.wait(alice.run(contend(site, new Idle())))) as Held;
  const read = async () => {
    const bob = bench.player("bob");
    const seen = await bench.wait(bob.run(bob.site().register.read(bench.now())));
    return seen.kind === "read" ? seen.value : undefined;
  };
  /** The record of a successor, which has read the register. */
  const succeed = (number = held.record.number + 1n, at: readonly number[] = [0, 1, 2]) => {
    const content = encodeRecord(recordOf({ writer: "bob", number, epoch: held.record.epoch + (1n << 40n) }));
    for (const store of at) bench.media[store]!.plant(x, content, kinds === slotted ? "bob" : "");
  };
  return { bench, alice, site, held, read, succeed };
}

describe.each(Object.entries({ slotted, atomic }))("on %s stores", (_kind, kinds) => {
  test("ND: a renewal writes a fresh timestamp of the same epoch", async () => {
    const { bench, alice, site, held, read } = await stage(kinds);
    await bench.world.advance(500);
    const begunMs = bench.nowMs;
    const renewed = (await bench.wait(alice.run(renewND(site, held)))) as Held;
    expect(bench.nowMs).toBe(begunMs);
    expect(renewed.remainingMs(bench.now())).toBe(leaseMs);
    expect(await read()).toEqual(renewed.record);
    expect(renewed.record).toMatchObject({ epoch: held.record.epoch, number: held.record.number + 1n });
    expect(renewed.record.nonce).toBeGreaterThan(held.record.nonce);
  });

  test("Fig. 5: a renewal reads, writes a fresh timestamp, pauses for 2δ, and finds it again", async () => {
    const { bench, alice, site, held, read } = await stage(kinds);
    await bench.world.advance(500);
    const begunMs = bench.nowMs;
    const renewed = (await bench.wait(alice.run(renewEventuallyND(site, held)))) as Held;
    expect(bench.nowMs - begunMs).toBe(2 * delayMs);
    // Counted from before the write, not from its end.
    expect(renewed.remainingMs(bench.now())).toBe(leaseMs - 2 * delayMs);
    expect(await read()).toEqual(renewed.record);
  });

  test("Fig. 5: a renewal fails if it finds a successor's record, which it does not touch", async () => {
    const { bench, alice, site, held, read, succeed } = await stage(kinds);
    succeed();
    const puts = bench.media.map(({ performed }) => performed.put + performed.replace);
    expect(await bench.wait(alice.run(renewEventuallyND(site, held)))).toMatchObject({ because: "lost" });
    expect(await read()).toMatchObject({ writer: "bob" });
    expect(bench.media.map(({ performed }) => performed.put + performed.replace)).toEqual(puts);
  });

  test("Fig. 5: a renewal fails if it finds another's record after the pause", async () => {
    const { bench, alice, site, held, succeed } = await stage(kinds);
    const renewing = alice.run(renewEventuallyND(site, held));
    await bench.world.advance(delayMs);
    succeed(held.record.number + 2n);
    expect(await bench.wait(renewing)).toMatchObject({ state: "idle", because: "lost" });
  });

  test("Fig. 5: a greater record of the same number is a loser's, and does not affect the hold", async () => {
    const { bench, alice, site, held, succeed } = await stage(kinds);
    succeed(held.record.number);
    expect((await bench.wait(alice.run(renewEventuallyND(site, held)))).state).toBe("hold");
  });

  describe("a contender that has lost with a greater number, because it alone had read a crashed one's record", () => {
    /** A renewal whose reads get their first majority from the store with that record and one other. */
    async function renewedDespite(loserAt: readonly number[], afterMs: number, silent = false) {
      const { bench, alice, site, held, succeed } = await stage(kinds);
      for (const [store, medium] of bench.media.entries())
        medium.latencyMs = { request: 1, answer: store === 0 ? 2 : 0 };
      const renewing = alice.run(renewEventuallyND(site, held));
      await bench.world.advance(afterMs);
      succeed(held.record.number + 2n, loserAt);
      if (silent) bench.media[0]!.stall("requests");
      return bench.wait(renewing);
    }

    test.each([
      ["before a renewal begins", 0],
      ["in its pause", delayMs],
    ])("takes no hold away: it wrote %s", async (_when, afterMs) => {
      expect((await renewedDespite([1], afterMs)).state).toBe("hold");
    });

    test.each([
      ["before a renewal begins", 0],
      ["in its pause", delayMs],
    ])(
      "is taken for a successor while a store that may have its record is silent: it wrote %s",
      async (_when, afterMs) => {
        expect(await renewedDespite([1], afterMs, true)).toMatchObject({ because: "lost" });
      },
    );

    test.each([
      ["before a renewal begins", 0],
      ["in its pause", delayMs],
    ])("is no loser if a majority has its record: it wrote %s", async (_when, afterMs) => {
      expect(await renewedDespite([0, 1], afterMs)).toMatchObject({ because: "lost" });
    });
  });

  test("a contender that crashed after reading a store that came back empty ends no hold", async () => {
    const bench = new PaperBench(kinds);
    bench.floor = { epoch: 1n << 40n, number: 1n << 77n };
    const [alice, bob] = [bench.player("alice"), bench.player("bob")];
    const cellOf = (writer: string) => (kinds === slotted ? writer : "");
    const before = encodeRecord(recordOf({ writer: "before", number: 7n, state: "free" }));
    for (const medium of bench.media.slice(1)) medium.plant(x, before, cellOf("before"));
    const seen = (await bench.wait(bob.run(bob.site().register.read(bench.now())))) as Seen;
    expect(seen.stores[0]).toEqual([]);
    bench.media[0]!.plant(x, encodeRecord(bob.site().recordAfter(seen)), cellOf("bob"));
    bench.media[0]!.stall("requests");
    const site = alice.site();
    const held = (await bench.wait(alice.run(contend(site, new Idle())))) as Held;
    bench.media[0]!.resume();
    bench.media[2]!.stall("requests");
    expect((await bench.wait(alice.run(renewEventuallyND(site, held)))).state).toBe("hold");
  });

  test("a minority that never answers delays no renewal", async () => {
    const { bench, alice, site, held } = await stage(kinds);
    bench.media[1]!.stall("answers");
    const begunMs = bench.nowMs;
    expect((await bench.wait(alice.run(renewND(site, held)))).state).toBe("hold");
    expect(bench.nowMs).toBe(begunMs);
  });

  test("release frees exactly the record that it names", async () => {
    const { bench, alice, site, held, read } = await stage(kinds);
    await bench.wait(alice.run(release(site, held)));
    const { number, epoch } = held.record;
    expect(await read()).toMatchObject({ state: "free", number, epoch });
  });

  test("a late release leaves a successor's record the greatest", async () => {
    const late = async () => {
      const { bench, alice, site, held, read, succeed } = await stage(kinds);
      succeed();
      await bench.wait(alice.run(release(site, held)));
      return (await read())?.state;
    };
    expect(await late()).toBe("held");
    await duringFaults({ releaseOverSuccessor: true }, async () => expect(await late()).toBe("free"));
  });
});

test("on stores that compare and set, a release of a record that was renewed since frees nothing", async () => {
  const { bench, alice, site, held, read } = await stage(atomic);
  await bench.world.advance(100);
  const renewed = (await bench.wait(alice.run(renewND(site, held)))) as Held;
  await bench.wait(alice.run(release(site, held)));
  expect(await read()).toEqual(renewed.record);
});

test("on stores that compare and set, a write over the content that its read has found is not refused there", async () => {
  const renewalMs = async () => {
    const { bench, alice, site, held } = await stage(atomic);
    for (const medium of bench.media) medium.latencyMs = { request: 4, answer: 4 };
    const begunMs = bench.nowMs;
    expect((await bench.wait(alice.run(renewND(site, held)))).state).toBe("hold");
    return bench.nowMs - begunMs;
  };
  expect(await renewalMs()).toBe(16);
  await duringFaults({ contentsForgotten: true }, async () => expect(await renewalMs()).toBe(24));
});

describe("a holder whose operation took δ or longer has lost at once", () => {
  const bench = new PaperBench(slotted);
  const site = bench.player("alice").site();
  const held = new Held(recordOf({ writer: "alice" }), { monotonicMs: 0, wallMs: 0 });
  const cells = bench.media.map(({ id }) => {
    return { kind: "cells", id, cells: [encodeRecord(held.record)] } as const;
  });
  const written = bench.media.map(({ id }) => ({ kind: "written", id }) as const);

  test.each([
    [delayMs - 1, "hold"],
    [delayMs, "idle"],
  ])("ND: read and write together in %d ms: %s", (tookMs, state) => {
    const protocol = renewND(site, held);
    protocol.next();
    protocol.next(resumption(0));
    protocol.next(resumption(1, cells));
    protocol.next(resumption(tookMs, written));
    const { value } = protocol.next(resumption(tookMs));
    expect((value as Held | Idle).state).toBe(state);
  });

  test.each([
    [delayMs - 1, delayMs - 1, undefined],
    [delayMs, 1, "lost"],
    [1, delayMs, "lost"],
  ])("Fig. 5: the read in %d ms, the write in %d: %s", (readMs, writeMs, because) => {
    const protocol = renewEventuallyND(site, held);
    protocol.next();
    protocol.next(resumption(0));
    protocol.next(resumption(readMs, cells));
    const { value } = protocol.next(resumption(readMs + writeMs, written));
    expect((value as Partial<Idle>).because).toBe(because);
  });
});

test("an expired hold is not renewed, and no request is sent", async () => {
  const { bench, alice, site, held } = await stage(slotted);
  await bench.world.advance(leaseMs);
  const reads = bench.media.map(({ performed }) => performed.read);
  for (const renew of [renewND, renewEventuallyND])
    expect(await bench.wait(alice.run(renew(site, held)))).toMatchObject({ state: "idle", because: "lost" });
  expect(bench.media.map(({ performed }) => performed.read)).toEqual(reads);
});

test("a renewal in which the hold expired is lost: another may have seen it end", async () => {
  const { bench, alice, site, held } = await stage(slotted);
  await bench.world.advance(leaseMs - 3 * delayMs);
  expect(held.remainingMs(bench.now())).toBeGreaterThan(0);
  expect(held.remainingMs(bench.now())).toBeLessThan(2 * delayMs);
  expect((await bench.wait(alice.run(renewEventuallyND(site, held)))).state).toBe("idle");
});

describe("on slotted stores that report when nothing was announced", () => {
  /** Another process that has read the register, and writes its claim while the holder renews. */
  async function claimed() {
    const { bench, alice, site, held } = await stage(slotted);
    const renew = (from: Held) => bench.wait(alice.run(renewEventuallyND(site, from)));
    const kept = (await renew(held)) as Held;
    const bob = bench.player("bob");
    const other = bob.site();
    const cur = await bench.wait(bob.run(other.register.read(bench.now())));
    const renewing = alice.run(renewEventuallyND(site, kept));
    await bench.world.advance(delayMs);
    const claiming = bob.run(claim(other, cur as Seen));
    await bench.world.advance(delayMs);
    return { renewed: await bench.wait(renewing), claiming: await bench.wait(claiming) };
  }

  test("a renewal without contenders reads no record", async () => {
    const { bench, alice, site, held } = await stage(slotted);
    const before = bench.media.map(({ quiet, performed }) => ({ quiet, reads: performed.read }));
    const renewed = await bench.wait(alice.run(renewEventuallyND(site, held)));
    expect(renewed.state).toBe("hold");
    for (const [store, { quiet, performed }] of bench.media.entries()) {
      expect(performed.read - before[store]!.reads).toBe(2);
      expect(quiet - before[store]!.quiet).toBe(2);
    }
  });

  test("a claim in between is announced, and the renewal finds it", async () => {
    expect((await claimed()).renewed).toMatchObject({ state: "idle", because: "lost" });
  });

  test("planted: a claim that is not announced is missed", async () => {
    const { renewed } = await duringFaults({ quietClaims: true }, claimed);
    expect(renewed.state).toBe("hold");
  });
});
