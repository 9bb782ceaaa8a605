import { mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { crc32 } from "node:zlib";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CrashDisk } from "../../../../test/support/crash-disk.js";
import { Xorshift } from "leasehold/common";
import { checksumOf, layBatch } from "leasehold/journal";
import type { BlockStore } from "../ports.js";
import type { Disk, DiskFile } from "./disk.js";
import { nodeDisk } from "./node-disk.js";
import { DirectoryStore, openBlockDirectory } from "./directory-store.js";

let folder: string;
const opened: BlockStore[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-files-"));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(folder, { recursive: true });
});

async function start(): Promise<BlockStore> {
  const store = await openBlockDirectory(folder);
  opened.push(store);
  return store;
}

async function restart(): Promise<BlockStore> {
  await opened.pop()?.close();
  return start();
}

/** A disk whose calls with one name don't return while it hangs. */
function hangingDisk(disk: Disk): {
  readonly disk: Disk;
  readonly files: DiskFile[];
  hangs: "sync" | "write" | "read" | undefined;
} {
  const never = new Promise<never>(() => undefined);
  const control = {
    hangs: undefined as "sync" | "write" | "read" | undefined,
    files: [] as DiskFile[],
    disk: {
      ...disk,
      open: async (name: string): Promise<DiskFile> => {
        const file = await disk.open(name);
        control.files.push(file);
        const or = <T>(what: string, call: () => Promise<T>): Promise<T> =>
          control.hangs === what ? never : call();
        return {
          read: (...given) => or("read", () => file.read(...given)),
          write: (...given) => or("write", () => file.write(...given)),
          sync: () => or("sync", () => file.sync()),
          truncate: (length) => file.truncate(length),
          size: () => file.size(),
          close: () => file.close(),
        };
      },
    },
  };
  return control;
}

const bytes = (text: string) => new TextEncoder().encode(text);

/** Flips one bit of a file, like a failing disk. */
async function rot(name: string, position: number): Promise<void> {
  const file = await open(join(folder, name), "r+");
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, position);
  byte[0]! ^= 4;
  await file.write(byte, 0, 1, position);
  await file.close();
}

async function dataFile(): Promise<string> {
  const [found] = await readdir(join(folder, "data-01"));
  return join("data-01", found!);
}

async function withBlocks(): Promise<BlockStore> {
  const store = await start();
  await fill(store);
  return store;
}

async function fill(store: BlockStore): Promise<void> {
  await store.writeNode("node");
  await store.writeMeta("a", "meta");
  await store.writeBlock("a", 0, "1.a", bytes("first"));
  await store.writeBlock("a", 7, "2.a", Buffer.alloc(300_000, "second"));
  await store.sync("a");
}

describe("a directory", () => {
  test("that is empty knows no node, and one that has been in use keeps it over a restart", async () => {
    expect(await (await start()).readNode()).toBeUndefined();
    await fill(opened[0]!);
    const store = await restart();
    expect(await store.readNode()).toBe("node");
    expect(await store.readMeta("a")).toBe("meta");
    expect(await store.listBlocks("a")).toEqual([
      { index: 0, tag: "1.a" },
      { index: 7, tag: "2.a" },
    ]);
    const second = (await store.readBlock("a", 7))!.bytes;
    expect(Buffer.alloc(300_000, "second").equals(second)).toBe(true);
    expect(await store.readBlock("a", 1)).toBeUndefined();
  });

  test("is locked by one process", async () => {
    await start();
    await expect(openBlockDirectory(folder)).rejects.toMatchObject({ code: "DATA_IN_USE" });
  });

  test("that was removed refuses durable writes", async () => {
    const store = await withBlocks();
    await rm(join(folder, "lock"));
    await store.writeBlock("a", 0, "3.a", bytes("third"));
    await expect(store.sync("a")).rejects.toMatchObject({ code: "DISK_FAILED" });
    await expect(store.writeMeta("a", "other")).rejects.toMatchObject({ code: "DISK_FAILED" });
  });

  test("uses no path of a user as a name in the file system", async () => {
    const store = await start();
    for (const path of ["con", "CON", "a", "a/b", "é/..x", "x".repeat(480)])
      await store.writeMeta(path, path);
    await store.writeBlock("a/b", 0, "1", bytes("x"));
    await store.sync("a/b");
    const names = await readdir(folder, { recursive: true });
    expect(
      names.filter((name) => !/^(lock|index-\d+\.log|(data-\d\d|small)(\/\d+\.blocks)?)$/.test(name)),
    ).toEqual([]);
    expect(await store.listFiles("a", "", 10)).toEqual(["a", "a/b"]);
    expect(await store.listFiles("", "a", 2)).toEqual(["a/b", "con"]);
    expect(await store.readMeta("CON")).toBe("CON");
  });
});

test("an index has a durable name before its records count", async () => {
  // A crash loses names that were not synced.
  const disk = new CrashDisk(() => 0);
  await (await DirectoryStore.open({ disk })).writeNode("node");
  disk.restart();
  expect(await (await DirectoryStore.open({ disk })).readNode()).toBe("node");
});

test("an index that is begun anew has a durable name before anything in it counts", async () => {
  const disk = new CrashDisk(() => 0);
  const store = await DirectoryStore.open({ disk });
  disk.failing = (call, name) =>
    call === "sync" && name.startsWith("index")
      ? Object.assign(new Error("EIO"), { code: "EIO" })
      : undefined;
  await expect(store.writeNode("never")).rejects.toMatchObject({ code: "DISK_FAILED" });
  disk.failing = () => undefined;
  await store.writeNode("node");
  disk.restart();
  expect(await (await DirectoryStore.open({ disk })).readNode()).toBe("node");
});

test("an index of the version before is read, and written anew before anything is added", async () => {
  const disk = new CrashDisk(() => 0);
  const head = Buffer.alloc(16);
  head.write("LHFIDX3\n", "latin1");
  head.writeUInt32LE(checksumOf(head.subarray(0, 12), 0), 12);
  const content = bytes("of before");
  const checksum = crc32(content, crc32("1 0 1.a"));
  const records = [
    ["n", "node"],
    ["f", 1, "a", "meta"],
    ["b", 1, [[0, "1.a", 0, content.length, checksum]]],
  ];
  const parts = records.flatMap((record) => {
    const length = Buffer.alloc(4);
    const text = Buffer.from(JSON.stringify(record));
    length.writeUInt32LE(text.length);
    return [length, text];
  });
  const index = await disk.open("index-000000001.log");
  await index.write(head, 0);
  await index.write(layBatch(parts, head.readUInt32LE(12), 16, 1).bytes, 16);
  await (await disk.open("data-01/1.blocks")).write(content, 0);
  const store = await DirectoryStore.open({ disk });
  expect((await store.readBlock("a", 0))?.bytes).toEqual(content);
  await store.writeBlock("a", 1, "2.a", bytes("small"));
  await store.sync("a");
  expect([...disk.contents().keys()].filter((name) => name.startsWith("index"))).toEqual([
    "index-000000002.log",
  ]);
  disk.kill();
  const again = await DirectoryStore.open({ disk });
  expect((await again.readBlock("a", 0))?.bytes).toEqual(content);
  expect((await again.readBlock("a", 1))?.bytes).toEqual(bytes("small"));
});

describe("bits that flip", () => {
  test("in a block are detected by the next read, which fails; other blocks are whole", async () => {
    await withBlocks();
    const store = await restart();
    await rot(await dataFile(), 150_000);
    await expect(store.readBlock("a", 7)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect((await store.readBlock("a", 0))?.bytes).toEqual(bytes("first"));
    expect(await store.listBlocks("a")).toHaveLength(2);
    await store.writeBlock("a", 7, "4.a", bytes("repaired"));
    expect((await store.readBlock("a", 7))?.tag).toBe("4.a");
  });

  test("anywhere in the index prevent the node from starting, unless they change nothing", async () => {
    await withBlocks();
    const index = (await readdir(folder)).find((name) => name.startsWith("index"));
    await opened.pop()!.close();
    const whole = await readFile(join(folder, index!));
    const random = new Xorshift(14);
    for (let tries = 0; tries < 60; tries += 1) {
      const harmed = Buffer.from(whole);
      harmed[Math.floor(random.next() * whole.length)]! ^= 1 << Math.floor(random.next() * 8);
      await writeFile(join(folder, index!), harmed);
      const refusal = await start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(refusal).toMatchObject({ code: "STORE_CORRUPT" });
    }
    await writeFile(join(folder, index!), whole);
    expect(await (await start()).readNode()).toBe("node");
  });

  test("and a sector of zeros before the end of the index keep the node from starting", async () => {
    await withBlocks();
    for (let index = 0; index < 40; index += 1)
      await opened.at(-1)!.writeMeta(`many/${index}`, "m".repeat(200));
    const index = (await readdir(folder)).find((name) => name.startsWith("index"));
    await opened.pop()!.close();
    const path = join(folder, index!);
    const whole = await readFile(path);
    for (const sector of [2, 5, 9]) {
      const harmed = Buffer.from(whole).fill(0, sector * 512, (sector + 1) * 512);
      await writeFile(path, harmed);
      await expect(openBlockDirectory(folder)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    }
  });

  test("and a missing index do not make a node look empty", async () => {
    await withBlocks();
    await opened.pop()!.close();
    const index = (await readdir(folder)).find((name) => name.startsWith("index"));
    await rm(join(folder, index!));
    await expect(openBlockDirectory(folder)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });
});

describe("room", () => {
  const memory = async (): Promise<[CrashDisk, DirectoryStore]> => {
    const disk = new CrashDisk(() => 0.5);
    return [disk, await DirectoryStore.open({ disk, reserveBytes: 1_000 })];
  };

  test("that is exhausted is STORE_FULL, loses nothing, and can be freed", async () => {
    const [disk, store] = await memory();
    await store.writeMeta("a", "meta");
    await store.writeBlock("a", 0, "1", Buffer.alloc(10_000, 1));
    await store.sync("a");
    const used = [...disk.contents().values()].reduce((sum, size) => sum + size, 0);
    disk.room = used + 5_000;
    expect(await store.hasRoom(5_000)).toBe(false);
    await expect(store.writeBlock("a", 0, "2", Buffer.alloc(70_000, 2))).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    expect((await store.readBlock("a", 0))?.tag).toBe("1");
    disk.room = used + 200_000;
    expect(await store.hasRoom(5_000)).toBe(true);
    await store.writeBlock("a", 0, "2", Buffer.alloc(70_000, 2));
    await store.sync("a");
    expect((await store.readBlock("a", 0))?.tag).toBe("2");
  });

  test("is freed: replaced blocks are reused, and removed ones returned to the disk", async () => {
    const [disk, store] = await memory();
    await store.writeMeta("a", "meta");
    for (let round = 0; round < 20; round += 1) {
      for (let index = 0; index < 10; index += 1)
        await store.writeBlock("a", index, `${round}`, Buffer.alloc(81_920, round));
      await store.sync("a");
    }
    expect(disk.contents().get("data-01/1.blocks")).toBeLessThanOrEqual(20 * 81_920);
    for (let index = 0; index < 10; index += 1) await store.removeBlock("a", index);
    await store.sync("a");
    expect(disk.contents().get("data-01/1.blocks")).toBe(0);
    expect(await store.listBlocks("a")).toEqual([]);
  });

  test("of a removed file is returned, also if a crash came before the end of its removal", async () => {
    const [disk, store] = await memory();
    for (const path of ["a", "b"]) {
      await store.writeMeta(path, "meta");
      await store.writeBlock(path, 0, "1", Buffer.alloc(81_920, 1));
      await store.sync(path);
    }
    await store.removeFile("a");
    await store.removeFile("a");
    expect([...disk.contents().keys()].filter((name) => name.endsWith(".blocks"))).toEqual([
      "data-02/2.blocks",
    ]);
    expect([await store.readMeta("a"), await store.listBlocks("a")]).toEqual([undefined, []]);
    // The record of a removal is durable before the data file is removed.
    const left = await disk.open("data-01/1.blocks");
    await left.write(Buffer.alloc(4_096), 0);
    await store.close();
    const again = await DirectoryStore.open({ disk, reserveBytes: 0 });
    expect([...disk.contents().keys()].filter((name) => name.endsWith(".blocks"))).toEqual([
      "data-02/2.blocks",
    ]);
    expect((await again.readBlock("b", 0))?.tag).toBe("1");
  });

  test("that is being freed is not allocated before it is", async () => {
    const [disk, store] = await memory();
    await store.writeMeta("a", "meta");
    await store.writeBlock("a", 0, "1", Buffer.alloc(81_920, 1));
    await store.sync("a");
    await store.removeBlock("a", 0);
    const { open } = disk;
    let goOn = (): void => undefined;
    let begun = (): void => undefined;
    const isCut = new Promise<void>((resolve) => (begun = resolve));
    disk.open = async (name) => {
      const file = await open.call(disk, name);
      if (!name.startsWith("data")) return file;
      const truncate = async (bytes: number): Promise<void> => {
        begun();
        await new Promise<void>((resolve) => (goOn = resolve));
        await file.truncate(bytes);
      };
      return { ...file, truncate };
    };
    const again = await DirectoryStore.open({ disk, reserveBytes: 0 });
    await again.removeBlock("a", 0);
    const synced = again.sync("a");
    await isCut;
    const written = again.writeBlock("a", 1, "2", Buffer.alloc(81_920, 2));
    for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
    goOn();
    await Promise.all([synced, written]);
    expect((await again.readBlock("a", 1))?.tag).toBe("2");
  });

  test("of the index is bounded: one that has grown is rewritten with the live records", async () => {
    const [disk, store] = await memory();
    await store.writeMeta("a", "meta");
    await store.writeBlock("a", 0, "1", bytes("x"));
    await store.sync("a");
    for (let round = 0; round < 350; round += 1) await store.writeNode("n".repeat(60_000) + round);
    const indices = [...disk.contents()].filter(([name]) => name.startsWith("index"));
    expect(indices).toHaveLength(1);
    expect(indices[0]![1]).toBeLessThan(8 * 1024 * 1024);
    disk.kill();
    const again = await DirectoryStore.open({ disk });
    expect((await again.readNode())?.endsWith("n349")).toBe(true);
    expect((await again.readBlock("a", 0))?.tag).toBe("1");
  });
});

test.each(["sync", "write"] as const)(
  "the oldest operation of a disk that hangs is known: a %s",
  async (what) => {
    const hanging = hangingDisk(nodeDisk(folder));
    const store = await DirectoryStore.open({ disk: hanging.disk });
    await fill(store);
    expect(store.oldestWait).toBeUndefined();
    hanging.hangs = what;
    void store.writeMeta("a", "next");
    await vi.waitFor(() =>
      expect(store.oldestWait?.what).toMatch(new RegExp(`^${what} of index-\\d+\\.log`)),
    );
    const { waitedMs } = store.oldestWait!;
    hanging.hangs = undefined;
    // A later operation that has returned doesn't replace it as the oldest.
    await store.readBlock("a", 7);
    expect(store.oldestWait).toMatchObject({ what: expect.stringContaining(what) as unknown });
    expect(store.oldestWait!.waitedMs).toBeGreaterThanOrEqual(waitedMs);
    // The store cannot close while an operation has not returned.
    for (const file of hanging.files) await file.close();
  },
);
