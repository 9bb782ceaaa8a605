import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DirectoryLock } from "./directory-lock.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-lock-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("the lock of a data directory", () => {
  test.skipIf(process.platform !== "linux")("has no longest path on Linux", async () => {
    const deep = join(folder, "d".repeat(200), "e".repeat(200));
    const first = await DirectoryLock.take(deep);
    await expect(DirectoryLock.take(deep)).rejects.toMatchObject({
      code: "DATA_IN_USE",
      message: expect.stringContaining(join(deep, "lock")),
    });
    expect(await first.isOurs()).toBe(true);
    await first.release();
    await (await DirectoryLock.take(deep)).release();
    expect(readdirSync(deep)).toEqual([]);
  });

  test("is taken from a process that was killed", async () => {
    const deep = join(folder, "d".repeat(200));
    for (const place of [folder, deep]) {
      await (await DirectoryLock.take(place)).release();
      const killed = spawnSync(process.execPath, [
        "-e",
        'process.chdir(process.argv[1]); require("node:net").createServer().listen("lock", () => process.kill(process.pid, "SIGKILL"))',
        place,
      ]);
      expect(killed.signal).toBe("SIGKILL");
      expect(readdirSync(place)).toContain("lock");
      const lock = await DirectoryLock.take(place);
      expect(await lock.isOurs()).toBe(true);
      await lock.release();
    }
  });

  test("is held by one process at a time, and lost when its file is removed", async () => {
    const first = await DirectoryLock.take(folder);
    await expect(DirectoryLock.take(folder)).rejects.toMatchObject({ code: "DATA_IN_USE" });
    expect(await first.isOurs()).toBe(true);
    await first.release();
    const second = await DirectoryLock.take(folder);
    await rm(join(folder, "lock"));
    expect(await second.isOurs()).toBe(false);
    await second.release();
  });
});
