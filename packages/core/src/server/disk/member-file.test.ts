import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { checksumOf } from "leasehold/journal";
import { readMemberRecord, writeMemberRecord } from "./member-file.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-member-file-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const record = {
  id: 1n,
  cluster: 0xfedc_ba98_7654_3210n,
  disk: 7n,
  begun: true,
  members: [{ id: 1n, name: "a", peerUrls: ["http://h:2380"] }],
  disks: new Map([[1n, 7n]]),
  version: 7,
};

test("a written record is read back; without a file there is no record", async () => {
  expect(await readMemberRecord(folder)).toBeUndefined();
  await writeMemberRecord(folder, record);
  expect(await readMemberRecord(folder)).toEqual(record);
});

test.each([
  [{ id: "" }, "id should be 1 to 16 hexadecimal digits"],
  [{ cluster: 1 }, "cluster should be"],
  [{ disk: "fffffffffffffffff" }, "disk should be"],
  [{ begun: "yes" }, "begun should be true or false"],
  [{ format: "1" }, "format should be 2"],
  [{ members: {} }, "members should be a list"],
  [{ members: [null] }, "members[0].peerUrls should be a list"],
  [{ members: [{ id: "1", name: "a", peerUrls: [2] }] }, "members[0].peerUrls[0] should be text"],
  [{ members: [{ id: "1", peerUrls: [] }] }, "members[0].name should be text"],
  [{ version: "8" }, "version should be a number"],
  [{ disks: [["1"]] }, "disks[0][1] should be"],
  [{ disks: [["1", "2", "3"]] }, "disks[0] should be a pair"],
])("a file with %j is damaged, and the error says where", async (wrong, where) => {
  await writeMemberRecord(folder, record);
  const path = join(folder, "member.json");
  const content = JSON.parse(readFileSync(path, "utf8")) as object;
  writeFileSync(path, JSON.stringify({ ...content, ...wrong }));
  await expect(readMemberRecord(folder)).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringContaining(where) as unknown,
  });
});

test("a file that is not an object is damaged; a newer format means a newer version", async () => {
  const path = join(folder, "member.json");
  writeFileSync(path, "[]");
  await expect(readMemberRecord(folder)).rejects.toThrow(`${path} is damaged: it should be one JSON object`);
  writeFileSync(path, '{ "format": 4 }');
  await expect(readMemberRecord(folder)).rejects.toMatchObject({ code: "VERSION_MISMATCH" });
});

/** An odd step, so that each bit of a byte is flipped at some byte. */
const bitsPerLook = effort > 1 ? 1 : 11;

test("a flipped bit is detected, or changes nothing", async () => {
  await writeMemberRecord(folder, record);
  const path = join(folder, "member.json");
  const whole = readFileSync(path);
  for (let bit = 0; bit < 8 * whole.length; bit += bitsPerLook) {
    const flipped = Buffer.from(whole);
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    writeFileSync(path, flipped);
    const found = await readMemberRecord(folder).catch((error: { code: string }) => error.code);
    const refusals: unknown[] = ["LOG_CORRUPT", "VERSION_MISMATCH"];
    expect([...refusals, record], `bit ${bit}`).toContainEqual(found);
  }
});

test("a file of the former format, which has no checksum, is read", async () => {
  await writeMemberRecord(folder, record);
  const path = join(folder, "member.json");
  const { checksum, ...content } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  expect(checksum).toBeTypeOf("number");
  writeFileSync(path, JSON.stringify({ ...content, format: 1 }));
  expect(await readMemberRecord(folder)).toEqual(record);
});

test("a file that names tokens, written by an earlier version, is read", async () => {
  await writeMemberRecord(folder, record);
  const path = join(folder, "member.json");
  const { checksum: _checksum, ...content } = JSON.parse(readFileSync(path, "utf8")) as object & {
    checksum: number;
  };
  const former = { ...content, secret: "0123", tokens: [["1", "ab"]] };
  const checksum = checksumOf(Buffer.from(JSON.stringify(former)), 0);
  writeFileSync(path, JSON.stringify({ ...former, checksum }));
  expect(await readMemberRecord(folder)).toEqual(record);
});

test("a directory of a later cluster has a format that earlier servers refuse, and is refused by its version", async () => {
  const path = join(folder, "member.json");
  const formatOf = () => (JSON.parse(readFileSync(path, "utf8")) as { format: number }).format;
  await writeMemberRecord(folder, record);
  expect(formatOf()).toBe(2);
  await writeMemberRecord(folder, { ...record, version: 8 });
  expect(formatOf()).toBe(3);
  expect(await readMemberRecord(folder)).toEqual({ ...record, version: 8 });
  await writeMemberRecord(folder, { ...record, version: 9 });
  await expect(readMemberRecord(folder)).rejects.toMatchObject({
    code: "VERSION_MISMATCH",
    message: expect.stringContaining("its cluster speaks version 9; this one 8") as unknown,
  });
});
