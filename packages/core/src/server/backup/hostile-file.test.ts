import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  areSame,
  bootstrap,
  compact,
  fileOf,
  frozenState,
  put,
  some,
  stateWith,
  withMeta,
  written,
} from "../../../../../test/support/backups.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { restoreState, snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { databasePages, planDatabase } from "./bolt/write.js";
import { bucketsOf } from "./buckets.js";
import { readBackup } from "./read-backup.js";
import { idBytes, keyValueBytes, leaseBytes, revisionOf } from "./records.js";

const version = {
  key: "k",
  modified: 899,
  sub: 0,
  created: 899,
  version: 1,
  value: "x",
  lease: 0n,
};

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-backup-"));
  path = join(folder, "one");
});
afterEach(() => rmSync(folder, { recursive: true }));

async function again(bytes: Uint8Array): Promise<CoreState> {
  writeFileSync(path, bytes);
  return (await readBackup(path, Infinity)).state;
}

/** Pages of `key` begin here. Its root is its only branch. */
const firstLeaf = 3 * 4096;
const branchOf = (file: Buffer) =>
  4096 * Array.from({ length: file.length / 4096 }, (_, id) => file.readUInt16LE(id * 4096 + 8)).indexOf(1);
let pagesOnce: Buffer | undefined;
function manyPages(): Buffer {
  const puts = () => Array.from({ length: 400 }, (_, number) => put(`k${number}`, "v".repeat(1_000)));
  pagesOnce ??= written(stateWith(bootstrap, ...puts())).subarray(0, -32);
  return pagesOnce;
}
const child = (index: number) => 16 + index * 16 + 8;

test.each<[string, (file: Buffer) => unknown, string]>([
  ["pages that are not there", (file) => file.writeUInt32LE(0xffff_ffff, firstLeaf + 12), "beyond the end"],
  [
    "more elements than it has room for",
    (file) => file.writeUInt16LE(257, firstLeaf + 10),
    "no room for 257",
  ],
  ["a key beyond the page", (file) => file.writeUInt32LE(0xffff_ff00, firstLeaf + 20), "not within the page"],
  [
    "a value beyond the page",
    (file) => file.writeUInt32LE(0xffff_ff00, firstLeaf + 28),
    "not within the page",
  ],
  ["a key among the elements", (file) => file.writeUInt32LE(0, firstLeaf + 20), "not within the page"],
  [
    "elements that overlap",
    (file) => file.writeUInt32LE(file.readUInt32LE(firstLeaf + 36) - 1, firstLeaf + 36),
    "overlaps the one before it",
  ],
  ["a bucket among keys", (file) => file.writeUInt32LE(1, firstLeaf + 16), "within another one"],
  ["another number", (file) => file.writeUInt16LE(9, firstLeaf), "has the number of another page"],
  ["another kind", (file) => file.writeUInt16LE(0x10, firstLeaf + 8), "of another kind"],
  [
    "itself below it",
    (file) => file.writeBigUInt64LE(BigInt(branchOf(file) / 4096), branchOf(file) + child(0)),
    "in two places",
  ],
  [
    "one page below it twice",
    (file) => file.writeBigUInt64LE(3n, branchOf(file) + child(1)),
    "in two places",
  ],
  [
    "a page far away below it",
    (file) => file.writeBigUInt64LE(1n << 60n, branchOf(file) + child(1)),
    "not in the file",
  ],
  [
    "the first page below it",
    (file) => file.writeBigUInt64LE(0n, branchOf(file) + child(1)),
    "not in the file",
  ],
  ["nothing below it", (file) => file.writeUInt16LE(0, branchOf(file) + 10), "no pages below it"],
  [
    "pages in another order",
    (file) => {
      file.writeBigUInt64LE(4n, branchOf(file) + child(0));
      file.writeBigUInt64LE(3n, branchOf(file) + child(1));
    },
    "not after the one before",
  ],
  ["a root far away", (file) => withMeta(file, { root: 1e9 }), "not in the file"],
  ["more pages than bytes", (file) => withMeta(file, { pages: 2 ** 52 }), "cut off"],
  ["no pages", (file) => withMeta(file, { pages: 0 }), "not in the file"],
  ["pages of another size", (file) => withMeta(file, { pageBytes: 5_000 }), "pages of 5000 bytes"],
])("a file with a page that has %s is refused for that", async (_what, damage, why) => {
  const file = Buffer.from(manyPages());
  damage(file);
  writeFileSync(path, file);
  const refusal = readBackup(path, Infinity, { skipHashCheck: true });
  await expect(refusal).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringContaining(why) as string,
  });
});

describe("a file made by etcd", () => {
  test("may have an unfinished compaction, which is then finished", async () => {
    const scheduled = [Buffer.from("scheduledCompactRev"), revisionOf(200, 0)] as const;
    const restored = await again(fileOf(stateWith(...some(), compact(100n)), { meta: [[...scheduled]] }));
    expect(areSame(restored, stateWith(...some(), compact(100n), compact(200n)))).toBe(true);
  });

  test("may have a key whose lease is gone: on all servers it stays detached, even if the id is granted again", async () => {
    const state = stateWith(...some(), put("orphan", "w"), put("orphan", "x", 5n), put("last", "x"));
    const newest = state.revisions.get("orphan")!;
    const orphan = { ...newest, lease: 99n };
    const key = [revisionOf(orphan.modified, 0), keyValueBytes(orphan)] as const;
    const restored = await again(fileOf(state, { key: [[...key]] }));
    const other = restoreState(snapshotPieces(restored));
    for (const server of [restored, other]) {
      expect(server.revisions.get("orphan")).toEqual({ ...orphan, lease: 0n });
      const { changes } = server.revisions.changesSince(
        { revision: 1, sub: 0 },
        { from: "orphan", to: "p" },
        9,
      );
      expect(changes.map(({ lease }) => lease)).toEqual([0n, 0n]);
      server.apply(create(CommandSchema, { body: { case: "leaseGrant", value: { ID: 99n, TTL: 60n } } }), 1);
    }
    const third = restoreState(snapshotPieces(other));
    for (const server of [restored, other, third]) {
      server.apply(create(CommandSchema, { body: { case: "leaseRevoke", value: { ID: 99n } } }), 1);
      expect(server.revisions.get("orphan")).toBeDefined();
    }
    expect(areSame(restored, third) && areSame(restored, other)).toBe(true);
  });

  test.each([0n, 1n])(
    "with authentication enabled at revision %s keeps it enabled, also in a snapshot",
    async (revision) => {
      const auth = [
        [Buffer.from("authEnabled"), Buffer.of(1)],
        [Buffer.from("authRevision"), idBytes(revision)],
      ] as const;
      const restored = await again(
        fileOf(stateWith(bootstrap), { auth: auth.map(([key, value]) => [key, value]) }),
      );
      const copies = [restored, restoreState(snapshotPieces(restored)), await again(written(restored))];
      expect(copies.map(({ auth: { isEnabled, revision: own } }) => [isEnabled, own])).toEqual(
        copies.map(() => [true, 1n]),
      );
    },
  );

  test.each<[string, Record<string, readonly [Uint8Array, Uint8Array][]>]>([
    [
      "of keys",
      {
        key: Array.from({ length: 20 }, (_, index): [Uint8Array, Uint8Array] => {
          const whole = { ...version, modified: 900 + index, created: 900, value: Buffer.alloc(10_000) };
          return [revisionOf(900 + index, 0), index === 19 ? Buffer.of(1) : keyValueBytes(whole)];
        }),
      },
    ],
    [
      "of leases",
      {
        lease: Array.from({ length: 400 }, (_, index): [Uint8Array, Uint8Array] => {
          const id = BigInt(1_000 + index);
          return [idBytes(id), index === 399 ? Buffer.of(1) : leaseBytes({ id, ttl: 1n })];
        }),
      },
    ],
    [
      "of names",
      {
        leasehold: Array.from({ length: 400 }, (_, index): [Uint8Array, Uint8Array] => {
          return [idBytes(BigInt(1_000 + index)), index === 399 ? Buffer.of(0xff) : Buffer.alloc(300, "n")];
        }),
      },
    ],
    [
      "of what a role may do",
      {
        authRoles: [
          [Buffer.from("r"), Buffer.concat([Buffer.alloc(20_000, Buffer.of(0x12, 0)), Buffer.of(7)])],
        ],
      },
    ],
    [
      "of a user's roles",
      {
        authUsers: [
          [Buffer.from("u"), Buffer.concat([Buffer.alloc(20_000, Buffer.of(0x1a, 0)), Buffer.of(7)])],
        ],
      },
    ],
  ])("with more %s than may be kept is refused before all of it is read", async (_what, changes) => {
    const state = stateWith(...some());
    writeFileSync(path, fileOf(state, changes));
    const refusal = readBackup(path, state.bytes + 50_000);
    // The unreadable part is at the end.
    await expect(refusal).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(readBackup(path, Infinity)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
  });

  test("with a repeated bucket, or thousands of buckets, is refused", async () => {
    const empty = (name: string) => ({ name, items: () => [] });
    const ours = finish(bucketsOf(frozenState(stateWith(bootstrap))));
    const many = Array.from({ length: 1_001 }, (_, index) => empty(`x${10_000 + index}`));
    const again = ours.flatMap((bucket) => (bucket.name === "meta" ? [bucket, bucket] : [bucket]));
    for (const [buckets, why] of [
      [again, "not after the one before"],
      [[...ours, ...many], "buckets"],
      [[...ours, empty("n".repeat(2_000))], "buckets"],
    ] as const) {
      writeFileSync(path, Buffer.concat([...databasePages(finish(planDatabase(buckets)))]));
      const refusal = readBackup(path, Infinity, { skipHashCheck: true });
      await expect(refusal).rejects.toMatchObject({
        code: "LOG_CORRUPT",
        message: expect.stringContaining(why) as string,
      });
    }
  });

  test.each([
    ["a revision in another form", { key: [[Buffer.from("k"), keyValueBytes(version)]] }],
    ["a key of another revision", { key: [[revisionOf(900, 0), keyValueBytes(version)]] }],
    ["bytes that are no key", { key: [[revisionOf(900, 0), Buffer.from([0x0a, 0x7f])]] }],
    ["a lease with another id", { lease: [[idBytes(77n), leaseBytes({ id: 78n, ttl: 1n })]] }],
    ["a lease without end", { lease: [[idBytes(77n), leaseBytes({ id: 77n, ttl: 2n ** 62n })]] }],
    ["two leases of one name", { leasehold: [[idBytes(5n), Buffer.from("nächtlich")]] }],
    ["a compaction of nothing", { meta: [[Buffer.from("finishedCompactRev"), Buffer.of(1)]] }],
    [
      "a key that has no bytes",
      { key: [[revisionOf(900, 0), keyValueBytes({ ...version, modified: 900, key: "" })]] },
    ],
    [
      "a revision that nothing can follow",
      { key: [[revisionOf(2 ** 53 - 1, 0, true), keyValueBytes({ ...version, version: 0 })]] },
    ],
    [
      "a compaction that nothing can follow",
      { meta: [[Buffer.from("finishedCompactRev"), revisionOf(2 ** 53 - 1, 0)]] },
    ],
    [
      "rights of a revision that nothing can follow",
      { auth: [[Buffer.from("authRevision"), idBytes(2n ** 63n)]] },
    ],
    ["rights that are neither on nor off", { auth: [[Buffer.from("authEnabled"), Buffer.of(2)]] }],
    ["a user of another name", { authUsers: [[Buffer.from("u"), Buffer.of(0x0a, 1, 0x76)]] }],
    ["a role of another name", { authRoles: [[Buffer.from("u"), Buffer.of(0x0a, 1, 0x76)]] }],
    ["a name that is no text", { leasehold: [[idBytes(5n), Buffer.of(0xff)]] }],
    [
      "a value that fits into no piece",
      { key: [[revisionOf(899, 0), keyValueBytes({ ...version, value: new Uint8Array(2 ** 25) })]] },
    ],
    ["a user that is none", { authUsers: [[Buffer.from("u"), Buffer.from([0x0a, 0x7f])]] }],
  ] satisfies [string, Parameters<typeof fileOf>[1]][])("is refused with %s", async (_what, changes) => {
    await expect(again(fileOf(stateWith(...some()), changes))).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining("the record ") as string,
    });
  });
});
