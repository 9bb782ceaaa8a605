import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DiskIndex } from "./disk-index.js";
import { readMemberRecord, writeMemberRecord } from "./member-file.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-disk-index-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const record = {
  id: 1n,
  cluster: 2n,
  disk: 7n,
  begun: true,
  members: [],
  disks: new Map<bigint, bigint>(),
  version: 7,
};

async function reopened(): Promise<DiskIndex> {
  return new DiskIndex(folder, (await readMemberRecord(folder))!);
}

test("disks learnt concurrently are all stored and survive a restart; the first one counts", async () => {
  await writeMemberRecord(folder, record);
  const index = await reopened();
  const learnt = await Promise.all([index.learn(2n, 22n), index.learn(3n, 33n), index.learn(2n, 99n)]);
  expect(learnt).toEqual([true, true, false]);
  const again = await reopened();
  expect([again.isKnown(2n, 22n), again.isKnown(2n, 99n), again.isKnown(3n, 33n)]).toEqual([
    true,
    false,
    true,
  ]);
  expect(again.isKnown(4n, 44n)).toBeUndefined();
});

test("a version raised while disks are learnt is stored with them", async () => {
  await writeMemberRecord(folder, record);
  const index = await reopened();
  await Promise.all([index.learn(2n, 22n), index.raise(8), index.learn(3n, 33n)]);
  expect(index.version).toBe(8);
  const again = await reopened();
  expect([again.version, again.isKnown(2n, 22n), again.isKnown(3n, 33n)]).toEqual([8, true, true]);
});
