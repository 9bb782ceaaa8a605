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
  secret: "00".repeat(32),
  tokens: new Map<bigint, string>(),
};
const token = (byte: number) => Uint8Array.from({ length: 16 }, () => byte);
const members = [1n, 2n, 3n];

async function reopened(): Promise<DiskIndex> {
  return new DiskIndex(folder, (await readMemberRecord(folder))!);
}

test("tokens and disks that come at once are all kept, and are there after a start", async () => {
  await writeMemberRecord(folder, record);
  const index = await reopened();
  await Promise.all([
    index.keepToken(2n, token(2), members),
    index.learn(2n, 22n),
    index.keepToken(3n, token(9), members),
    index.keepToken(3n, token(3), members),
    index.learn(3n, 33n),
  ]);
  const again = await reopened();
  expect([...again.tokenOf(2n)]).toEqual([...token(2)]);
  expect([...again.tokenOf(3n)]).toEqual([...token(3)]);
  expect([again.isKnown(2n, 22n), again.isKnown(3n, 33n)]).toEqual([true, true]);
});

test("what is no token, and who is no member, is not kept", async () => {
  await writeMemberRecord(folder, record);
  const index = await reopened();
  await index.keepToken(2n, new Uint8Array(15), members);
  await index.keepToken(4n, token(4), members);
  expect([index.tokenOf(2n).length, index.tokenOf(4n).length]).toEqual([0, 0]);
  await index.keepToken(2n, token(2), members);
  await index.keepToken(3n, token(3), [1n, 3n]);
  expect([index.tokenOf(2n).length, index.tokenOf(3n).length]).toEqual([0, 16]);
});

test("a token is of one member of one server, and the same after a start", async () => {
  await writeMemberRecord(folder, record);
  const index = await reopened();
  const other = new DiskIndex(folder, { ...record, secret: "01".repeat(32) });
  const shown = index.tokenFor(2n);
  expect((await reopened()).isTokenOf(2n, shown)).toBe(true);
  expect(index.isTokenOf(3n, shown)).toBe(false);
  expect(other.isTokenOf(2n, shown)).toBe(false);
  for (const wrong of [new Uint8Array(), shown.subarray(1), token(0)])
    expect(index.isTokenOf(2n, wrong)).toBe(false);
});
