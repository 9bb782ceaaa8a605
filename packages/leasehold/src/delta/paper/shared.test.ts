import { describe, expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  recordOf,
  seenOf,
  slotted,
} from "../../../../../test/support/paper-bench.js";
import { encodeRecord } from "../record/codec.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import { compareStamps } from "../record/stamp.js";
import { contend } from "./contend.js";
import { release, renewEventuallyND } from "./renew.js";
import { ReaderSite } from "./shared.js";
import { Nonces } from "./site.js";
import { Held, Idle } from "./states.js";

class Library {
  readonly bench: PaperBench;

  constructor(kinds: typeof slotted | typeof atomic) {
    this.bench = new PaperBench(kinds);
  }

  async reader(name: string, leaseMs = 2_000) {
    const player = this.bench.player(name);
    const { environment } = player;
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const held = await this.bench.wait(player.run(contend(site, new Idle())));
    if (held.state === "idle") throw new Error(`${name} cannot read: ${held.because}`);
    return { player, site, held };
  }

  /**
   * Another reader has read a store that had come back empty, and has written its record: the epoch is above
   * that store's floor.
   */
  comesNewer({ record }: Held): bigint {
    const epoch = record.epoch + 9n;
    const other = recordOf({ readers: ["newer"], writer: "newer", number: record.number + 1n, epoch });
    for (const medium of this.bench.media) medium.plant(leaseRegister("r"), encodeRecord(other), "newer");
    return epoch;
  }

  writer(name = "writer") {
    const player = this.bench.player(name);
    return player.run(contend(player.site(), new Idle()));
  }
}

describe.each(Object.entries({ slotted, atomic }))("readers and writers on %s stores", (_kind, kinds) => {
  test("readers join present readers, without the first wait, and share their epoch", async () => {
    const library = new Library(kinds);
    const { held } = await library.reader("a");
    const begunMs = library.bench.nowMs;
    const second = await library.reader("b");
    expect(library.bench.nowMs - begunMs).toBe(2 * delayMs);
    expect(second.held.record.epoch).toBe(held.record.epoch);
    expect(held.remainingMs(library.bench.now())).toBeGreaterThan(0);
  });

  test("readers that begin at the same moment share an epoch, too", async () => {
    const library = new Library(kinds);
    for (const medium of library.bench.media) medium.latencyMs = { request: 5, answer: 5 };
    const readers = await Promise.all([library.reader("a"), library.reader("b"), library.reader("c")]);
    expect(new Set(readers.map(({ held }) => held.record.epoch)).size).toBe(1);
  });

  test("a reader that finds a greater epoch of another at the end of its claim tries again, and joins it", async () => {
    const epochs = async () => {
      const library = new Library(kinds);
      const { held } = await library.reader("a");
      const joining = library.reader("b");
      await library.bench.world.advance(delayMs);
      const before = library.comesNewer(held);
      return { given: (await joining).held.record.epoch, before };
    };
    const { given, before } = await epochs();
    expect(given).toBe(before);
    await duringFaults({ readerJoinsOlderEpoch: true }, async () => {
      const { given, before } = await epochs();
      expect(given).toBeLessThan(before);
    });
  });

  test("a holder's renewal does not fail because a reader has joined with a greater epoch", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const { player, site, held } = await library.reader("a");
    const renewing = player.run(renewEventuallyND(site, held));
    await bench.world.advance(delayMs);
    const epoch = library.comesNewer(held);
    const renewed = (await bench.wait(renewing)) as Held;
    expect(renewed.state).toBe("hold");
    const again = (await bench.wait(player.run(renewEventuallyND(site, renewed)))) as Held;
    expect(again.record.epoch).toBe(epoch);
  });

  test("readers renew concurrently: one's record is as good as another's", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const readers = [await library.reader("a"), await library.reader("b")];
    for (let round = 0; round < 4; round += 1) {
      await bench.world.advance(leaseMs / 3);
      for (const reader of readers) {
        const { player, site, held } = reader;
        reader.held = (await bench.wait(player.run(renewEventuallyND(site, held)))) as Held;
        expect(reader.held).toBeInstanceOf(Held);
      }
    }
  });

  test("one reader's release does not free the others", async () => {
    const freed = async () => {
      const library = new Library(kinds);
      const { bench } = library;
      const [a, b] = [await library.reader("a"), await library.reader("b")];
      // The last record is b's: releasing it would free a's hold, too.
      await bench.wait(b.player.run(release(b.site, b.held)));
      const renewed = await bench.wait(a.player.run(renewEventuallyND(a.site, a.held)));
      return renewed.state === "idle";
    };
    expect(await freed()).toBe(false);
    await duringFaults({ readerReleaseFreesAll: true }, async () => expect(await freed()).toBe(true));
  });

  test("a writer waits for the last of the readers", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const [a, b] = [await library.reader("a"), await library.reader("b")];
    const writing = library.writer();
    await bench.wait(a.player.run(release(a.site, a.held)));
    await bench.world.advance(leaseMs / 2);
    b.held = (await bench.wait(b.player.run(renewEventuallyND(b.site, b.held)))) as Held;
    expect(b.held.state).toBe("hold");
    const held = await bench.wait(writing);
    expect(held.state).toBe("hold");
    expect(b.held.remainingMs(bench.now())).toBe(0);
  });

  test("a reader waits for a writer", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const held = (await bench.wait(library.writer())) as Held;
    const { held: reading } = await library.reader("a");
    expect(held.remainingMs(bench.now())).toBe(0);
    expect(reading.record.epoch).toBeGreaterThan(held.record.epoch);
  });

  test("a renewal keeps the longer Δ and the greater epoch of a later reader", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const short = await library.reader("short", 1_000);
    const long = await library.reader("long", leaseMs);
    short.held = (await bench.wait(short.player.run(renewEventuallyND(short.site, short.held)))) as Held;
    expect(short.held.record).toMatchObject({ leaseMs, epoch: long.held.record.epoch });
    const writing = library.writer();
    await bench.wait(writing);
    expect(long.held.remainingMs(bench.now())).toBe(0);
  });

  test("a reader's record covers those that it replaces, is greater, and is always written", () => {
    const { environment } = new PaperBench(kinds).player("a");
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const own = recordOf({ readers: ["a"], epoch: 5n, number: 5n, writer: "a", nonce: 10 });
    const less = { ...own, readers: ["b"], number: 4n, writer: "b" };
    expect(site.mayTake(less, seenOf([less]), own)).toBe(true);
    for (const more of [
      { ...less, epoch: 6n },
      { ...less, leaseMs: leaseMs + 1 },
      { ...less, number: 9n },
    ]) {
      const next = site.mayTake(more, seenOf([more]), own) as DeltaRecord;
      expect(next).toMatchObject({
        epoch: more.epoch > own.epoch ? more.epoch : own.epoch,
        leaseMs: Math.max(more.leaseMs, own.leaseMs),
        readers: ["a"],
        writer: "a",
      });
      expect(compareStamps(next, more)).toBeGreaterThan(0);
      expect(compareStamps(next, own)).toBeGreaterThan(0);
    }
  });

  test("a reader that a writer has not seen loses to the writer's greater record, whatever other readers wrote", () => {
    const { environment } = new PaperBench(kinds).player("m");
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const own = recordOf({ readers: ["m"], writer: "m", number: 5n });
    const writer = recordOf({ writer: "w", number: 5n });
    const crashed = recordOf({ readers: ["z"], writer: "z", number: 5n });
    expect(site.isMine(seenOf([own], [crashed]), own)).toBe(true);
    expect(site.isMine(seenOf([own, writer], [crashed]), own)).toBe(false);
    expect(site.isMine(seenOf([own, { ...writer, number: 4n }], [crashed]), own)).toBe(true);
  });

  test("a reader keeps its lease against a writer that has lost, and loses it to one that a majority shows", () => {
    const { environment } = new PaperBench(kinds).player("m");
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const own = recordOf({ readers: ["m"], writer: "m", number: 5n });
    const reader = recordOf({ readers: ["z"], writer: "z", number: 9n });
    const writer = recordOf({ writer: "w", number: 7n });
    const verdicts = (...stores: (readonly DeltaRecord[] | undefined)[]) => [
      site.isNoSuccessor(stores, own),
      site.isStillMine(stores, own),
    ];
    expect(verdicts([own, writer], [own, reader], [reader])).toEqual([true, true]);
    expect(verdicts([own, writer], undefined, [own])).toEqual([false, false]);
    expect(verdicts([own, writer], [writer], [own])).toEqual([false, false]);
  });

  test("no reader shortens the Δ by which a writer waits for another reader", async () => {
    const library = new Library(kinds);
    const { held } = await library.reader("a");
    const { player, site } = await library.reader("b");
    site.leaseMs = 100;
    const renewed = await library.bench.wait(player.run(renewEventuallyND(site, held)));
    expect(renewed.state === "hold" && renewed.record.leaseMs).toBe(leaseMs);
  });
});

describe("the record of a crashed reader on one store", () => {
  test("does not hide the writer on the others: a later process waits for that one", async () => {
    const held = async () => {
      const library = new Library(slotted);
      const { bench } = library;
      const writing = (await bench.wait(library.writer("alice"))) as Held;
      const { number, epoch } = writing.record;
      // It began when alice did, and is the greater one.
      const crashed = recordOf({ readers: ["zoe"], writer: "zoe", number, epoch });
      bench.media[2]!.plant(leaseRegister("r"), encodeRecord(crashed), "zoe");
      bench.media[0]!.latencyMs = { request: 10, answer: 10 };
      const { held: reading } = await library.reader("bob");
      return { writer: writing.remainingMs(bench.now()), isSame: reading.record.epoch === epoch };
    };
    expect(await held()).toEqual({ writer: 0, isSame: false });
    await duringFaults({ greatestRecordOnly: true }, async () =>
      expect((await held()).writer).toBeGreaterThan(0),
    );
  });

  test("or of a crashed contender, with a greater number, does not hide that a holder renews", async () => {
    const overlap = async () => {
      const library = new Library(slotted);
      const { bench } = library;
      const alice = bench.player("alice");
      // Only the third store has it, which is slow for alice from then on.
      const crashed = recordOf({ writer: "zoe", number: 9n, leaseMs: 500 });
      bench.media[2]!.plant(leaseRegister("r"), encodeRecord(crashed), "zoe");
      bench.media[2]!.stall("requests");
      const site = alice.site();
      let held = (await bench.wait(alice.run(contend(site, new Idle())))) as Held;
      bench.media[2]!.resume();
      const taken = library.writer("bob").then((state) => ({ state, leftMs: held.remainingMs(bench.now()) }));
      bench.media[0]!.latencyMs = { request: 10, answer: 10 };
      await bench.world.advance(leaseMs / 2);
      bench.media[2]!.stall("requests");
      bench.media[0]!.latencyMs = { request: 0, answer: 0 };
      held = (await bench.wait(alice.run(renewEventuallyND(site, held)))) as Held;
      bench.media[0]!.latencyMs = { request: 10, answer: 10 };
      bench.media[2]!.resume();
      return bench.wait(taken);
    };
    expect(await overlap()).toMatchObject({ leftMs: 0 });
    await duringFaults({ greatestRecordOnly: true }, async () =>
      expect((await overlap()).leftMs).toBeGreaterThan(0),
    );
  });
});

test("a reader whose claim is cancelled or refused frees nothing by which others read", async () => {
  const frees = async () => {
    const library = new Library(atomic);
    const { bench } = library;
    const { held } = await library.reader("alice");
    const player = bench.player("bob");
    const { environment } = player;
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    const joining = player.run(contend(site, new Idle()), cancellation);
    await bench.world.advance(delayMs);
    cancellation.cancelled = true;
    cancellation.onCancel?.();
    expect(await bench.wait(joining)).toMatchObject({ because: "cancelled" });
    await bench.wait(library.writer());
    return held.remainingMs(bench.now()) > 0;
  };
  expect(await frees()).toBe(false);
  await duringFaults({ readerWithdraws: true }, async () => expect(await frees()).toBe(true));
});
