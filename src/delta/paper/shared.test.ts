import { describe, expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  recordOf,
  slotted,
} from "../../../test/support/paper-bench.js";
import { duringFaults } from "../planted-faults.js";
import { contend } from "./contend.js";
import { renewEventuallyND } from "./renew.js";
import { contendShared, ReaderSite, releaseShared } from "./shared.js";
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
    const held = await this.bench.wait(player.run(contendShared(site, new Idle())));
    if (held.state === "idle") throw new Error(`${name} cannot read: ${held.because}`);
    return { player, site, held };
  }

  writer(name = "writer") {
    const player = this.bench.player(name);
    return player.run(contend(player.site(), new Idle()));
  }
}

describe.each(Object.entries({ slotted, atomic }))("readers and writers on %s stores", (_kind, kinds) => {
  test("readers join those who read already, without the first wait, and share their epoch", async () => {
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

  test("readers renew beside each other: one's record is as good as another's", async () => {
    const library = new Library(kinds);
    const { bench } = library;
    const readers = [await library.reader("a"), await library.reader("b")];
    for (let round = 0; round < 4; round++) {
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
      // The last record is b's: by releasing it, b would free a's hold, too.
      await bench.wait(b.player.run(releaseShared(b.site, b.held)));
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
    await bench.wait(a.player.run(releaseShared(a.site, a.held)));
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

  test("a renewal keeps the longer Δ and the greater epoch of who came later", async () => {
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

  test("a record that is worth less than one's own is none that one holds by", () => {
    const { environment } = new PaperBench(kinds).player("a");
    const site = new ReaderSite({ environment, resource: "r", leaseMs, nonces: new Nonces() });
    const own = recordOf({ readers: ["a"], epoch: 5n, writer: "a" });
    const others = { ...own, readers: ["b"], writer: "b", nonce: 9 };
    expect(site.isMine(others, own)).toBe(true);
    for (const less of [
      { ...others, epoch: 4n },
      { ...others, leaseMs: leaseMs - 1 },
    ]) {
      expect(site.isMine(less, own)).toBe(false);
      expect(site.mayReplace(own, undefined, less)).toBe("done");
      expect(site.mayReplace(less, undefined, own)).toBe(true);
    }
  });

  test("no reader makes the Δ shorter by which a writer waits for another", async () => {
    const library = new Library(kinds);
    const { held } = await library.reader("a");
    const { player, site } = await library.reader("b");
    site.leaseMs = 100;
    const renewed = await library.bench.wait(player.run(renewEventuallyND(site, held)));
    expect(renewed.state === "hold" && renewed.record.leaseMs).toBe(leaseMs);
  });
});
