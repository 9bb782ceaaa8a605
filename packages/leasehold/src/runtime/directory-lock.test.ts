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
