import { expect, test } from "vitest";
import { CrashDisk } from "../../../../test/support/crash-disk.js";
import { SmallBlocks } from "./small-blocks.js";

const slotBytes = 64 * 1024;
const full = (fill: number): Buffer => Buffer.alloc(slotBytes, fill);

async function write(small: SmallBlocks, fill: number): Promise<number> {
  const start = small.take(slotBytes);
  await small.write(start, full(fill));
  return start;
}

/** The byte that fills the slot. */
async function filledWith(small: SmallBlocks, start: number): Promise<number | undefined> {
  const found = Buffer.alloc(slotBytes);
  expect(await small.read(start, found)).toBe(slotBytes);
  return found.equals(full(found[0]!)) ? found[0] : undefined;
}

test("slots are used again, and those at the end are returned to the disk", async () => {
  const disk = new CrashDisk(() => 0.5);
  const small = new SmallBlocks(disk);
  const starts: number[] = [];
  for (let count = 0; count < 40; count += 1) starts.push(await write(small, count));
  await small.sync();
  expect(disk.contents().get("small/65536.blocks")).toBe(40 * slotBytes);
  small.give({ start: 3, bytes: slotBytes });
  expect(await write(small, 3)).toBe(3);
  for (const start of starts.slice(4)) small.give({ start, bytes: slotBytes });
  await small.sync();
  expect(disk.contents().get("small/65536.blocks")).toBeLessThanOrEqual(24 * slotBytes);
  expect(await filledWith(small, 3)).toBe(3);
  expect(await filledWith(new SmallBlocks(disk), 3)).toBe(3);
});

test("slots that are being returned are not written before they are", async () => {
  const disk = new CrashDisk(() => 0.5);
  const { open } = disk;
  let goOn = (): void => undefined;
  disk.open = async (name) => {
    const file = await open.call(disk, name);
    const truncate = async (bytes: number): Promise<void> => {
      await new Promise<void>((resolve) => (goOn = resolve));
      await file.truncate(bytes);
    };
    return { ...file, truncate };
  };
  const small = new SmallBlocks(disk);
  for (let count = 0; count < 16; count += 1) await write(small, count);
  await small.sync();
  for (let start = 0; start < 16; start += 1) small.give({ start, bytes: slotBytes });
  const start = await write(small, 77);
  const synced = small.sync();
  for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
  goOn();
  await synced;
  expect(await filledWith(new SmallBlocks(disk), start)).toBe(77);
});

test("blocks for which the disk has no room are kept in memory, but for the one too many", async () => {
  const disk = new CrashDisk(() => 0.5);
  disk.room = 10_000;
  const small = new SmallBlocks(disk);
  const starts: number[] = [];
  for (let count = 0; count < 15; count += 1) starts.push(await write(small, count));
  await expect(write(small, 15)).rejects.toThrow("ENOSPC");
  expect(await filledWith(small, starts[12]!)).toBe(12);
  disk.room = Infinity;
  await small.sync();
  expect(await filledWith(new SmallBlocks(disk), starts[12]!)).toBe(12);
});

test("after a restart the slots that the index doesn't have are free", async () => {
  const disk = new CrashDisk(() => 0.5);
  const small = new SmallBlocks(disk);
  for (let count = 0; count < 5; count += 1) await write(small, count);
  await small.sync();
  const again = new SmallBlocks(disk);
  await again.restored([
    { start: 0, bytes: slotBytes },
    { start: 2, bytes: slotBytes },
  ]);
  expect(disk.contents().get("small/65536.blocks")).toBe(3 * slotBytes);
  expect([again.take(slotBytes), again.take(slotBytes)]).toEqual([1, 3]);
});

test("slots that could not be synced are never believed again: the disk may have lost them", async () => {
  const disk = new CrashDisk(() => 0.5);
  const small = new SmallBlocks(disk);
  await write(small, 1);
  disk.failing = (call) => (call === "sync" ? new Error("EIO") : undefined);
  await expect(small.sync()).rejects.toThrow("EIO");
  disk.failing = () => undefined;
  await expect(small.sync()).rejects.toThrow("EIO");
});
