import { constants } from "node:fs";
import { mkdtemp, open, readdir, readFile, readlink, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import type { Entry, HardState } from "../raft/types.js";
import { Journal, type JournalOptions } from "./journal.js";
import { pieceBytesMax, Snapshots } from "./snapshots.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-journal-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const data = (text: string) => new TextEncoder().encode(text);
const entry = (index: number, term = 1, text = `entry ${index}`): Entry => ({
  kind: "normal",
  index,
  term,
  data: data(text),
});
const hardState = (term: number, commit = 0): HardState => ({ term, votedFor: 7n, commit });

/** Small segments have little preallocated room: tests open many. */
const smallSegments = { segmentBytes: 64 * 1024 };

async function withJournal<T>(
  body: (opened: Awaited<ReturnType<typeof Journal.open>>) => Promise<T>,
  options: JournalOptions = smallSegments,
): Promise<T> {
  const opened = await Journal.open(folder, options);
  try {
    return await body(opened);
  } finally {
    await opened.journal.close();
  }
}

const content = () => withJournal(async (opened) => opened.content);
const segments = async () => (await readdir(folder)).filter((name) => name.endsWith(".wal")).sort();
const indexes = (entries: readonly Entry[]) => entries.map(({ index, term }) => `${index}@${term}`);

describe("the journal", () => {
  test("a new journal has nothing, not even a term", async () => {
    expect(await content()).toEqual({
      hardState: undefined,
      base: { index: 0, term: 0 },
      entries: [],
      tornBytes: 0,
    });
  });

  test("returns what was appended, including membership changes", async () => {
    const change: Entry = {
      kind: "config",
      index: 2,
      term: 1,
      change: { kind: "add-learner", member: (1n << 64n) - 1n },
      data: data("server"),
    };
    await withJournal(async ({ journal }) => {
      await journal.append({ entries: [entry(1), change], hardState: hardState(1) });
      await journal.append({ entries: [entry(3, 2, "")], hardState: { ...hardState(2, 2), votedFor: 0n } });
    });
    const found = await content();
    expect(found.entries).toEqual([entry(1), change, entry(3, 2, "")]);
    // Without a promise, as in files of earlier versions.
    expect(found.hardState).toEqual({ term: 2, votedFor: 0n, commit: 2, promisedMs: undefined });
    const promised = { ...hardState(2, 2), promisedMs: 500.5 };
    await withJournal(({ journal }) => journal.append({ hardState: promised }));
    expect((await content()).hardState).toEqual(promised);
  });

  test("an entry at an existing index voids the earlier one and all after it (Raft 5.3)", async () => {
    await withJournal(async ({ journal }) => {
      await journal.append({ entries: [entry(1), entry(2), entry(3)] });
      await journal.append({ entries: [entry(2, 2)] });
    });
    expect(indexes((await content()).entries)).toEqual(["1@1", "2@2"]);
  });

  test("writes queued while the disk is busy share one sync", async () => {
    await withJournal(async ({ journal }) => {
      const appended = Array.from({ length: 100 }, (_, index) =>
        journal.append({ entries: [entry(index + 1)] }),
      );
      await Promise.all(appended);
      expect(journal.batches).toBe(100);
      expect(journal.syncs).toBeLessThan(3);
    });
    expect((await content()).entries).toHaveLength(100);
  });

  test("acknowledges a write only when it is on disk", async () => {
    const isDurable = async () => {
      for (const fd of await readdir("/proc/self/fd")) {
        const path = await readlink(`/proc/self/fd/${fd}`).catch(() => "");
        if (!path.startsWith(folder)) continue;
        const [, flags] = /^flags:\s+(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${fd}`, "utf8"))!;
        return (parseInt(flags!, 8) & constants.O_DSYNC) !== 0;
      }
      return undefined;
    };
    // In a new segment, and in an existing one.
    for (let time = 0; time < 2; time += 1)
      await withJournal(async () => expect(await isDurable()).toBe(true));
    await withJournal(async ({ journal }) => {
      const probe = await open(join(folder, "probe"), "w");
      const order: string[] = [];
      const prototype = Object.getPrototypeOf(probe) as { write: (...all: unknown[]) => Promise<unknown> };
      const { write } = prototype;
      vi.spyOn(prototype, "write").mockImplementation(async function (this: unknown, ...all) {
        const written = await write.apply(this, all);
        order.push("written");
        return written;
      });
      await journal.append({ entries: [entry(1)] });
      order.push("told");
      expect(order).toEqual(["written", "written", "told"]);
      await probe.close();
    });
  });

  test("after a failed write all later ones fail, and acknowledged writes are kept", async () => {
    await withJournal(async ({ journal }) => {
      await journal.append({ entries: [entry(1)] });
      const probe = await open(join(folder, "probe"), "w");
      const failing = vi
        .spyOn(Object.getPrototypeOf(probe) as typeof probe, "write")
        .mockRejectedValueOnce(Object.assign(new Error("no space"), { code: "ENOSPC" }));
      const [second, third] = [
        journal.append({ entries: [entry(2)] }),
        journal.append({ entries: [entry(3)] }),
      ];
      await expect(second).rejects.toMatchObject({ code: "DISK_FAILED", message: /the disk is full/ });
      await expect(third).rejects.toMatchObject({ code: "DISK_FAILED" });
      failing.mockRestore();
      await expect(journal.append({ entries: [entry(2)] })).rejects.toMatchObject({ code: "DISK_FAILED" });
      await probe.close();
    });
    expect((await content()).entries[0]).toEqual(entry(1));
  });

  test("segments are removed once a snapshot covers their content", async () => {
    await withJournal(
      async ({ journal }) => {
        for (let index = 1; index <= 40; index += 1)
          await journal.append({ entries: [entry(index)], hardState: hardState(3, index) });
        expect((await segments()).length).toBeGreaterThan(3);
        await journal.append({ compacted: { index: 30, term: 1 } });
        await journal.removeUpTo(30);
      },
      { segmentBytes: 512 },
    );
    const left = await segments();
    expect(left[0]).not.toBe("000000000001.wal");
    const found = await content();
    expect(found.base).toEqual({ index: 30, term: 1 });
    expect(found.entries.map(({ index }) => index)).toEqual([31, 32, 33, 34, 35, 36, 37, 38, 39, 40]);
    expect(found.hardState).toEqual(hardState(3, 40));
  });

  test("a leader's snapshot replaces the log, which continues after it", async () => {
    await withJournal(async ({ journal }) => {
      await journal.append({ entries: [entry(1), entry(2)] });
      await journal.append({ installed: { index: 9, term: 4 }, hardState: hardState(4, 9) });
      await journal.append({ entries: [entry(10, 4)] });
    });
    const found = await content();
    expect(found.base).toEqual({ index: 9, term: 4 });
    expect(indexes(found.entries)).toEqual(["10@4"]);
  });
});

describe("what a crash leaves", () => {
  const path = () => join(folder, "000000000001.wal");

  async function write(): Promise<number[]> {
    const ends: number[] = [];
    for (let index = 1; index <= 4; index += 1) {
      await withJournal(({ journal }) =>
        journal.append({ entries: [entry(index)], hardState: hardState(1, index) }),
      );
      ends.push((await readFile(path())).length);
    }
    return ends;
  }

  test("a file shorter than what was written is damaged: zeros had been preallocated for all of it", async () => {
    const ends = await write();
    const whole = await readFile(path());
    const starts = new Set([16, ...ends]);
    for (let length = 16; length <= whole.length; length += 1) {
      if (effort === 1 && length % 3 > 0 && !starts.has(length)) continue;
      await writeFile(path(), whole.subarray(0, length));
      const found = await content().then(
        ({ entries }) => entries.length,
        (error: { code: string }) => error.code,
      );
      const isEnd = length === 16 || ends.includes(length);
      expect(found, `${length} bytes`).toBe(
        isEnd ? ends.filter((end) => end <= length).length : "LOG_CORRUPT",
      );
    }
  });

  test("a batch survives as a whole or not at all, and the journal continues", async () => {
    await withJournal(({ journal }) => journal.append({ entries: [entry(1)], hardState: hardState(1, 1) }));
    const before = await readFile(path());
    await withJournal(({ journal }) =>
      Promise.all([
        journal.append({ entries: [entry(2, 1, "\0".repeat(700))], hardState: hardState(2, 1) }),
        journal.append({ entries: [entry(3, 2, "x".repeat(700))], installed: { index: 2, term: 2 } }),
      ]),
    );
    const whole = await readFile(path());
    for (let landed = 0; landed < 2 ** 4; landed += 1) {
      const bytes = Buffer.concat([before, Buffer.alloc(whole.length - before.length)]);
      for (let sector = 0; sector < 4; sector += 1)
        if ((landed & (1 << sector)) !== 0) whole.copy(bytes, sector * 512, sector * 512, (sector + 1) * 512);
      await writeFile(path(), bytes);
      await withJournal(async ({ journal, content: found }) => {
        const isWhole = landed === 2 ** 4 - 1;
        expect(found).toMatchObject(
          isWhole ? { base: { index: 2, term: 2 }, tornBytes: 0 } : { hardState: hardState(1, 1) },
        );
        expect(found.entries).toHaveLength(1);
        await journal.append({ entries: [entry(found.base.index + 2, 9)] });
      });
      expect((await content()).entries.at(-1)!.term).toBe(9);
    }
  });

  test("a new segment without writes receives the state of the earlier ones before they are removed", async () => {
    const options = { segmentBytes: 100 };
    await withJournal(async ({ journal }) => {
      await journal.append({ entries: [entry(1), entry(2)], hardState: hardState(7, 2) });
      await journal.append({ entries: [entry(3)] });
    }, options);
    const [, second] = await segments();
    await truncate(join(folder, second!), 16);
    await withJournal(async ({ journal }) => {
      await journal.append({ compacted: { index: 2, term: 1 } });
      await journal.removeUpTo(2);
    }, options);
    expect(await segments()).toEqual([second]);
    expect(await content()).toMatchObject({ hardState: hardState(7, 2), base: { index: 2, term: 1 } });
  });

  test("preallocated room is not a torn write, and a write into it may be torn at any sector", async () => {
    const sector = 512;
    const starts: number[] = [];
    let crashed: Buffer = Buffer.alloc(0);
    await withJournal(async ({ journal }) => {
      for (let index = 1; index <= 6; index += 1) {
        await journal.append({ entries: [entry(index, 1, "x".repeat(700))] });
        starts.push(await lastUsedByte());
      }
      crashed = await readFile(path());
    });
    expect(crashed.length).toBeGreaterThan(smallSegments.segmentBytes);
    expect((await readFile(path())).length).toBe(starts.at(-1));
    await writeFile(path(), crashed);
    expect(await content()).toMatchObject({ tornBytes: 0, entries: { length: 6 } });
    for (let cut = sector; cut < starts.at(-1)!; cut += sector) {
      await writeFile(path(), Buffer.from(crashed).fill(0, cut));
      await withJournal(async ({ journal, content: found }) => {
        expect(found.entries).toHaveLength(starts.filter((end) => end <= cut).length);
        await journal.append({ entries: [entry(found.entries.length + 1, 9)] });
      });
      expect((await content()).entries.at(-1)!.term).toBe(9);
    }
  });

  async function lastUsedByte(): Promise<number> {
    return (await readFile(path())).findLastIndex((byte) => byte !== 0) + 1;
  }

  test("a flipped bit is not a torn write: the server does not start", async () => {
    await write();
    await withJournal(({ journal }) => journal.append({ entries: [entry(5, 1, "\0".repeat(1_200))] }));
    const whole = await readFile(path());
    for (let offset = 0; offset < whole.length; offset += effort > 1 ? 1 : 3) {
      const damaged = Buffer.from(whole);
      damaged[offset]! ^= 1 << (offset % 8);
      await writeFile(path(), damaged);
      const outcome = await content().then(
        (found) => `${found.entries.length} entries`,
        (error: { code: string }) => error.code,
      );
      expect(outcome, `byte ${offset}`).toMatch(/^(LOG_CORRUPT|VERSION_MISMATCH)$/);
    }
  });

  test("sectors of zeros before a later write are not a torn write: the server does not start", async () => {
    for (let index = 1; index <= 3; index += 1)
      await withJournal(({ journal }) => journal.append({ entries: [entry(index, 1, "x".repeat(1_200))] }));
    const whole = await readFile(path());
    for (let start = 0; start + 1_800 < whole.length; start += 512) {
      await writeFile(path(), Buffer.from(whole).fill(0, start, start + 512));
      await expect(content(), `sector at ${start}`).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
  });

  test("a journal of the former format is read and continued in a new segment; its torn end is refused", async () => {
    const former = fileURLToPath(
      new URL("../../../../test/core/fixtures/data-1/wal/000000000001.wal", import.meta.url),
    );
    const bytes = await readFile(former);
    await writeFile(path(), Buffer.concat([bytes, Buffer.alloc(5_000)]));
    const found = await content();
    expect(found.entries.length).toBeGreaterThan(15);
    const next = found.entries.at(-1)!.index + 1;
    await withJournal(({ journal }) => journal.append({ entries: [entry(next, 9)] }));
    expect(await segments()).toHaveLength(2);
    expect((await content()).entries).toEqual([...found.entries, entry(next, 9)]);
    for (const name of await segments()) await rm(join(folder, name));
    for (const cut of [1, 20, 610]) {
      await writeFile(path(), Buffer.concat([bytes.subarray(0, -cut), Buffer.alloc(5_000)]));
      await expect(content()).rejects.toMatchObject({ code: "LOG_CORRUPT", message: /version of Leasehold/ });
    }
  });

  test("a missing segment is detected, and so is one from another journal", async () => {
    await withJournal(
      async ({ journal }) => {
        for (let index = 1; index <= 40; index += 1) await journal.append({ entries: [entry(index)] });
      },
      { segmentBytes: 512 },
    );
    const [first, second, third] = await segments();
    const kept = await readFile(join(folder, second!));
    await rm(join(folder, second!));
    await expect(content()).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: /000000000002.wal is missing/,
    });
    await writeFile(join(folder, second!), await readFile(join(folder, first!)));
    await expect(content()).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    const used = kept.findLastIndex((byte) => byte !== 0) + 1;
    await writeFile(join(folder, second!), kept.subarray(0, used - 5));
    await expect(content()).rejects.toMatchObject({ code: "LOG_CORRUPT", message: new RegExp(second!) });
    await writeFile(join(folder, second!), Buffer.from(kept).fill(0, used - 40));
    await expect(content()).rejects.toMatchObject({ code: "LOG_CORRUPT", message: new RegExp(second!) });
    await writeFile(join(folder, second!), kept);
    await rm(join(folder, first!));
    await expect(content()).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    expect(third).toBeDefined();
  });
});

describe("snapshots", () => {
  const meta = (index: number, term = 1) => ({
    index,
    term,
    membership: { voters: [1n, 2n], learners: [3n] },
  });
  const pieces = ["one", "two", "three"].map(data);

  async function readAll(
    snapshots: Snapshots,
    position: { index: number; term: number },
  ): Promise<Uint8Array[]> {
    const { batches } = await snapshots.read(position);
    const all: Uint8Array[] = [];
    for await (const batch of batches) for (const piece of batch) all.push(new Uint8Array(piece));
    return all;
  }

  test("a saved snapshot is read with its membership; the newest older one is kept", async () => {
    const snapshots = await Snapshots.open(folder);
    for (const index of [5, 300, 20]) await snapshots.save(meta(index), [pieces]);
    expect(await snapshots.list()).toHaveLength(3);
    await snapshots.removeBefore(300);
    expect(await snapshots.list()).toEqual([
      { index: 300, term: 1 },
      { index: 20, term: 1 },
    ]);
    expect((await snapshots.read({ index: 300, term: 1 })).meta).toEqual(meta(300));
    expect(await readAll(snapshots, { index: 300, term: 1 })).toEqual(pieces);
  });

  test("an unfinished one is discarded", async () => {
    const snapshots = await Snapshots.open(folder);
    const writer = await snapshots.begin(meta(5));
    await writer.write([data("something")]);
    expect(await snapshots.list()).toEqual([]);
    expect(await readdir(folder)).toHaveLength(1);
    await Snapshots.open(folder);
    expect(await readdir(folder)).toEqual([]);
    await writer.abort();
  });

  test("a piece too large to be read is not written, and no file is left", async () => {
    const snapshots = await Snapshots.open(folder);
    const tooLarge = new Uint8Array(pieceBytesMax + 1);
    await expect(snapshots.save(meta(5), [pieces, [tooLarge]])).rejects.toThrow(/a piece of 67108865 bytes/);
    expect(await readdir(folder)).toEqual([]);
  });

  test("pieces are read whole, wherever reads of the file split them", async () => {
    const snapshots = await Snapshots.open(folder);
    const sizes = [1, 262_144 - 40, 3, 700_000, 262_136, 8, 600_001];
    const long = sizes.map((size, at) => new Uint8Array(size).fill(at + 1));
    await snapshots.save(meta(5), [long]);
    const found = await readAll(snapshots, { index: 5, term: 1 });
    expect(Buffer.concat(found).equals(Buffer.concat(long))).toBe(true);
    expect(found.map(({ length }) => length)).toEqual(sizes);
  });

  test("damage anywhere is detected before the end", async () => {
    const snapshots = await Snapshots.open(folder);
    await snapshots.save(meta(5), [pieces]);
    const path = join(folder, (await readdir(folder))[0]!);
    const whole = await readFile(path);
    for (let offset = 0; offset < whole.length; offset += 1) {
      const damaged = Buffer.from(whole);
      damaged[offset]! ^= 1;
      await writeFile(path, damaged);
      const reading = readAll(snapshots, { index: 5, term: 1 });
      await expect(reading).rejects.toMatchObject({
        code: expect.stringMatching(/LOG_CORRUPT|VERSION_MISMATCH/),
      });
    }
    for (let length = 0; length < whole.length; length += 1) {
      await writeFile(path, whole.subarray(0, length));
      await expect(readAll(snapshots, { index: 5, term: 1 })).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
  });
});
