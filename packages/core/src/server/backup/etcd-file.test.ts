import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keysOf } from "../../state/leases.js";
import { bytesOfValue } from "../../state/values.js";
import { backupStatus, readBackup } from "./read-backup.js";

/**
 * Made by `etcdctl snapshot save` on etcd 3.4.23, after a compaction: some pages are free, and one has
 * overflow pages.
 */
const fixture = new URL("../../../../../test/core/fixtures/etcd-3.4.db.gz", import.meta.url);
const whole = gunzipSync(readFileSync(fixture));

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-etcd-file-"));
  path = join(folder, "one");
  writeFileSync(path, whole);
});
afterEach(() => rmSync(folder, { recursive: true }));

test("the status of a file made by etcd is the same as etcdctl's", async () => {
  const told = { hash: 1155608883, revision: 106, totalKey: 76, totalSize: 61440 };
  expect(await backupStatus(path)).toEqual(told);
});

test("a file made by etcd has its keys at each revision, and its leases, users and roles", async () => {
  const { auth, leases, revisions } = (await readBackup(path, Infinity)).state;
  const at = (key: string, revision: number) => {
    const version = revisions.getAt(key, revision);
    return version && [Buffer.from(bytesOfValue(version.value)).toString(), version.created, version.version];
  };
  expect([revisions.current, revisions.compacted, revisions.live]).toEqual([106, 60, 20]);
  expect([at("k3", 100), at("k3", 103), at("k3", 106)]).toEqual([
    ["value 83", 5, 5],
    undefined,
    ["again", 106, 1],
  ]);
  const { changes } = revisions.changesSince({ revision: 103, sub: 0 }, { from: "", to: undefined }, 99);
  expect(changes.map(({ key, modified, sub, version }) => [key, modified, sub, version])).toEqual([
    ["k3", 103, 0, 0],
    ["k10", 104, 0, 0],
    ["k11", 104, 1, 0],
    ["big", 105, 0, 1],
    ["k3", 106, 0, 1],
  ]);
  expect(at("k0", 60)).toEqual(["value 40", 2, 3]);
  expect(at("big", 106)![0]).toHaveLength(9_000);
  const [lease] = leases.all();
  expect([lease!.id, lease!.ttlSeconds, [...keysOf(lease!)]]).toEqual([
    0x5245a208a701d905n,
    1000,
    ["leased"],
  ]);
  expect(auth.users()).toMatchObject([{ name: "root", roles: ["root"] }]);
  expect(Buffer.from(auth.users()[0]!.secret).toString()).toMatch(/^\$2a\$10\$/);
  expect(auth.roles().map(({ name }) => name)).toEqual(["reading"]);
  expect(auth.isEnabled).toBe(false);
});

test("a file made by etcd is read by its second meta page if the first is damaged, and without a hash", async () => {
  const database = whole.subarray(0, -32);
  const newer = database.readBigUInt64LE(16 + 48) > database.readBigUInt64LE(4096 + 16 + 48) ? 0 : 4096;
  database[newer + 16 + 20]! ^= 1;
  writeFileSync(path, database);
  await expect(readBackup(path, Infinity)).rejects.toThrow("--skip-hash-check");
  const { state } = await readBackup(path, Infinity, { skipHashCheck: true });
  expect(state.revisions.current).toBeGreaterThan(100);
});
