import { describe, expect, test } from "vitest";
import { atomic, PaperBench, recordOf, slotted } from "../../../../../test/support/paper-bench.js";
import { decodeRecord, encodeRecord } from "../record/codec.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { MemoryMedium } from "../memory/memory-store.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import { numberAfter } from "./register.js";
import type { Site } from "./site.js";

const x = leaseRegister("r");
const written = (fields: Partial<DeltaRecord>) => encodeRecord(recordOf(fields));

/** A full write: both phases. */
function write(bench: PaperBench, site: Site, nonce: number) {
  const writer = site.environment.writer;
  return site.register.write((number) => recordOf({ number, writer, nonce }), bench.now());
}

describe.each(Object.entries({ atomic, slotted }))("the regular register on %s stores", (kind, kinds) => {
  test("returns the greatest timestamp of a majority", async () => {
    const bench = new PaperBench(kinds);
    const [alice, bob] = [bench.player("alice"), bench.player("bob")];
    await bench.wait(alice.run(write(bench, alice.site(), 1)));
    await bench.wait(bob.run(write(bench, bob.site(), 1)));
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen).toMatchObject({ kind: "read", value: { number: 2n, writer: "bob" } });
  });

  test("gives a write the number after the greatest that a majority has", async () => {
    const bench = new PaperBench(kinds);
    bench.media[1]!.plant(x, written({ number: 41n, writer: "late" }), kind === "slotted" ? "late" : "");
    const alice = bench.player("alice");
    bench.media[0]!.stall("requests");
    await bench.wait(alice.run(write(bench, alice.site(), 1)));
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen).toMatchObject({ value: { number: 42n, writer: "alice" } });
    expect(seen.kind === "read" && numberAfter(seen)).toBe(43n);
  });

  test("waits for no particular store: a minority never answers", async () => {
    const bench = new PaperBench(kinds);
    const alice = bench.player("alice");
    bench.media[2]!.stall("requests");
    const begunMs = bench.nowMs;
    expect(await bench.wait(alice.run(write(bench, alice.site(), 1)))).toMatchObject({ kind: "done" });
    expect(bench.nowMs - begunMs).toBe(0);
    bench.media[1]!.stall("answers");
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen).toMatchObject({ kind: "unanswered", error: { code: "NO_QUORUM" } });
    expect(bench.nowMs - begunMs).toBe(50);
  });

  test("keeps the greater value: a late write undoes nothing", async () => {
    const bench = new PaperBench(kinds);
    const [alice, bob] = [bench.player("alice"), bench.player("bob")];
    const early = recordOf({ number: 1n, writer: "alice" });
    await bench.wait(bob.run(write(bench, bob.site(), 1)));
    await bench.wait(bob.run(write(bench, bob.site(), 2)));
    const site = alice.site();
    await bench.wait(alice.run(site.register.send(early, (content) => content.number < 1n, bench.now())));
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen).toMatchObject({ value: { number: 2n, writer: "bob" } });
  });

  test("is monotonic: once a value was returned, no older one is", async () => {
    const flickers = async () => {
      const bench = new PaperBench(kinds);
      // Its writer crashed after one store had it.
      bench.media[0]!.plant(x, written({ number: 7n, writer: "gone" }), kind === "slotted" ? "gone" : "");
      const alice = bench.player("alice");
      const { register } = alice.site();
      bench.media[2]!.stall("requests");
      const first = await bench.wait(alice.run(register.read(bench.now())));
      bench.media[2]!.resume();
      bench.media[0]!.stall("requests");
      const second = await bench.wait(alice.run(register.read(bench.now())));
      expect(first).toMatchObject({ value: { number: 7n } });
      return second.kind === "read" && second.value?.number !== 7n;
    };
    expect(await flickers()).toBe(false);
    await duringFaults({ flickeringReader: true }, async () => expect(await flickers()).toBe(true));
  });

  test("never takes foreign or damaged content for a register that was never written", async () => {
    const bench = new PaperBench(kinds);
    const alice = bench.player("alice");
    const foreign = new TextEncoder().encode("not yours");
    bench.media[0]!.plant(x, foreign, "them");
    expect(await bench.wait(alice.run(write(bench, alice.site(), 1)))).toMatchObject({ kind: "done" });
    bench.media[1]!.plant(x, foreign, "them");
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen).toMatchObject({ kind: "unanswered", error: { code: "STORE_FOREIGN" } });
    expect(bench.media[0]!.cells(x)).toContainEqual(foreign);
  });

  test("does not count the answer of a store that has forgotten", async () => {
    const bench = new PaperBench(kinds);
    const alice = bench.player("alice");
    await bench.wait(alice.run(write(bench, alice.site(), 1)));
    bench.media[0]!.forget();
    bench.media[1]!.stall("requests");
    const seen = await bench.wait(alice.run(alice.site().register.read(bench.now())));
    expect(seen.kind).toBe("unanswered");
  });
});

test("the former content of a store that came back empty is not taken for a write to it", async () => {
  const bench = new PaperBench(atomic);
  const [first, second, third] = bench.media;
  const alice = bench.player("alice");
  const site = alice.site();
  // Only a refusal reveals the greater content: no read of this process counts that store.
  third!.plant(x, written({ number: 9n, writer: "bob" }));
  third!.latencyMs.answer = 5;
  first!.stall("requests");
  const refused = alice.run(site.register.send(recordOf({ writer: "alice" }), () => false, bench.now()));
  await bench.world.advance(10);
  first!.resume();
  expect(await bench.wait(refused)).toMatchObject({ kind: "done" });
  third!.plant(x, written({ number: 0n }));
  for (const medium of bench.media) medium.latencyMs.answer = medium === third ? 20 : 10;
  const writing = alice.run(write(bench, site, 2));
  await bench.world.advance(9);
  first!.stall("requests");
  third!.latencyMs.answer = 5;
  expect(await bench.wait(writing)).toMatchObject({ kind: "done" });
  for (const medium of [second!, third!])
    expect(medium.cells(x).map(decodeRecord)).toMatchObject([{ number: 2n, writer: "alice" }]);
});

test("on stores that can only write, each writer has a slot, and a read reads all of them", async () => {
  const bench = new PaperBench(slotted);
  for (const name of ["alice", "bob"]) {
    const player = bench.player(name);
    await bench.wait(player.run(write(bench, player.site(), 1)));
  }
  expect(bench.media.map((medium) => medium.cells(x).length)).toEqual([2, 2, 2]);
});

test("on stores that compare and set, any number of writers share one cell", async () => {
  const bench = new PaperBench(atomic);
  for (const name of ["alice", "bob", "carol"]) {
    const player = bench.player(name);
    await bench.wait(player.run(write(bench, player.site(), 1)));
  }
  expect(bench.media.map((medium) => medium.cells(x).length)).toEqual([1, 1, 1]);
});

test("the answer to an earlier read does not undo a holder's own write in its memory", async () => {
  const bench = new PaperBench(slotted);
  const alice = bench.player("alice");
  const { register } = alice.site();
  const [late, later, silent] = bench.media as [MemoryMedium, MemoryMedium, MemoryMedium];
  const [before, after] = [1n, 2n].map((number) => recordOf({ number, writer: "alice" }));
  const write = (record: DeltaRecord) => alice.run(register.sendQuietly(record, () => true, bench.now()));
  const read = () => bench.wait(alice.run(register.readByHolder(bench.now(), () => true)));
  await bench.wait(write(before!));
  late.latencyMs.answer = 30;
  expect(await read()).toMatchObject({ value: { number: 1n } });
  late.latencyMs.answer = 0;
  later.latencyMs.answer = 20;
  expect(await bench.wait(write(after!))).toMatchObject({ kind: "done" });
  await bench.world.advance(40);
  later.latencyMs.answer = 0;
  silent.stall("requests");
  expect(await read()).toMatchObject({ value: { number: 2n } });
});

test("an announcement that arrives while earlier ones are read stays unread", async () => {
  const bench = new PaperBench(slotted);
  const [alice, bob] = [bench.player("alice"), bench.player("bob")];
  const { register } = alice.site();
  const read = () => bench.wait(alice.run(register.readByHolder(bench.now(), () => true)));
  await read();
  const { lastNews } = register;
  register.markRead([0, 1, 2], lastNews);
  expect(register.hasNews).toBe(false);
  await bench.wait(bob.run(write(bench, bob.site(), 1)));
  await read();
  register.markRead([0, 1, 2], lastNews);
  expect(register.hasNews).toBe(true);
  register.markRead([0, 1, 2], register.lastNews);
  expect(register.hasNews).toBe(false);
});
