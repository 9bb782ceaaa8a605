import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seedOf } from "../../../../test/support/seed.js";
import { Xorshift } from "../../../common/xorshift.js";
import type { CommandBody } from "../../replica/context.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { Permission_Type as Type } from "../../gen/etcd/authpb_pb.js";
import { CommandSchema } from "../../gen/leasehold/command_pb.js";
import { frozen, restoreState, snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { backupBytes, planBackup } from "./backup-file.js";
import { type Meta, metaPage, readMeta } from "./bolt/format.js";
import type { Item } from "./bolt/tree.js";
import { databasePages, planDatabase } from "./bolt/write.js";
import { bucketsOf } from "./buckets.js";
import { hashOfAll, hashAt } from "./hashes.js";
import { backupStatus, readBackup } from "./read-backup.js";
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

function stateWith(...bodies: CommandBody[]): CoreState {
  const state = new CoreState();
  for (const body of bodies) state.apply(create(CommandSchema, { body }), 1);
  return state;
}

const put = (key: string, value: string, lease = 0n): CommandBody => ({
  case: "put",
  value: { key: Buffer.from(key), value: Buffer.from(value), lease },
});
const remove = (key: string): CommandBody => ({ case: "deleteRange", value: { key: Buffer.from(key) } });
const compact = (revision: bigint): CommandBody => ({ case: "compact", value: { revision } });
const bootstrap: CommandBody = {
  case: "bootstrap",
  value: { cluster: 9n, members: [{ id: 1n, name: "a", peerUrls: ["http://a:1"] }] },
};

const some = (): CommandBody[] => [
  bootstrap,
  { case: "leaseGrant", value: { ID: 5n, TTL: 60n } },
  { case: "leaseGrant", value: { ID: -7n, TTL: 61n } },
  { case: "registerLease", value: { name: "nächtlich", ttl: 62n, id: 6n } },
  put("leased", "x", -7n),
  ...Array.from({ length: 300 }, (_, number) => put(`k${number % 40}`, `value ${number}`)),
  remove("k7"),
  // Several changes in one revision.
  { case: "deleteRange", value: { key: Buffer.from("k1"), rangeEnd: Buffer.from("k2") } },
  { case: "userAdd", value: { name: "root", secret: Buffer.from("$scrypt$…") } },
  { case: "userAdd", value: { name: "nobody" } },
  { case: "roleAdd", value: { name: "reader" } },
  {
    case: "roleGrantPermission",
    value: {
      name: "reader",
      perm: { key: Buffer.from("k"), rangeEnd: Buffer.from("l"), permType: Type.READ },
    },
  },
  { case: "userGrantRole", value: { user: "root", role: "root" } },
  { case: "userGrantRole", value: { user: "nobody", role: "reader" } },
  { case: "authEnable", value: {} },
];

function frozenState(state: CoreState): FrozenState {
  const meta = { index: 7, term: 2, membership: { voters: [1n], learners: [] } };
  return { $typeName: "leasehold.FrozenState", meta, source: frozen(state), bytes: state.bytes };
}

function written(state: CoreState): Buffer {
  const plan = finish(planBackup(frozenState(state)));
  const bytes = Buffer.concat([...backupBytes(plan)]);
  expect(bytes.length).toBe(plan.bytes);
  return bytes;
}

async function again(bytes: Uint8Array): Promise<CoreState> {
  writeFileSync(path, bytes);
  return (await readBackup(path, Infinity)).state;
}

/** What a restored core begins with: no member of the old one, and no alarm of one. */
function contentOf(state: CoreState): Buffer {
  const copy = restoreState(snapshotPieces(state));
  copy.becomeNew();
  return Buffer.concat([...snapshotPieces(copy)]);
}

function areSame(one: CoreState, other: CoreState): boolean {
  return contentOf(one).equals(contentOf(other));
}

describe("a backup", () => {
  test("has all of the state, and its end as etcdctl wants it", async () => {
    const state = stateWith(...some());
    const bytes = written(state);
    expect(bytes.length % 512).toBe(32);
    expect(areSame(await again(bytes), state)).toBe(true);
  });

  test("has values that read as its first page would, if it were newer", async () => {
    const value = Buffer.alloc(100_000, "x");
    const stateOf = () => stateWith(bootstrap, { case: "put", value: { key: Buffer.from("a"), value } });
    const before = written(stateOf());
    const lure = { ...(readMeta(before.subarray(0, 4096)) as Meta), pageBytes: 16_384, transaction: 99n };
    value.set(metaPage(0, 2, lure).subarray(0, 80), 16_384 - before.indexOf(value));
    const state = stateOf();
    expect(areSame(await again(written(state)), state)).toBe(true);
  });

  test("has what was not compacted away, and nothing else, whatever was removed of it", async () => {
    const state = stateWith(...some(), compact(250n), put("later", "x"), remove("k9"));
    const bytes = written(state);
    finish(state.revisions.sweep());
    expect(written(state).equals(bytes)).toBe(true);
    const restored = await again(bytes);
    expect(areSame(restored, state)).toBe(true);
    expect(restored.revisions.hasGarbage).toBe(false);
    expect([restored.bytes, restored.revisions.live]).toEqual([state.bytes, state.revisions.live]);
  });

  test("of a state of which everything was deleted and compacted away keeps the revision", async () => {
    const state = stateWith(bootstrap, put("a", "1"), remove("a"), put("b", "2"), remove("b"), compact(5n));
    const restored = await again(written(state));
    expect(restored.revisions.current).toBe(5);
    expect(areSame(restored, state)).toBe(true);
    expect(areSame(await again(written(stateWith())), stateWith())).toBe(true);
  });

  test("has keys and values of any size, and pages below pages", async () => {
    const long = "x".repeat(300_000);
    const changes = Array.from({ length: 2_500 }, (_, number) => put(`key ${number}`, "v".repeat(250)));
    const users = Array.from({ length: 9 }, (_, number): CommandBody => {
      return { case: "userAdd", value: { name: `${number}${"u".repeat(3_000)}` } };
    });
    const state = stateWith(
      bootstrap,
      put("empty", ""),
      put("long", long),
      put(long, long),
      ...changes,
      ...users,
    );
    const bytes = written(state);
    expect(areSame(await again(bytes), state)).toBe(true);
    expect((await backupStatus(path)).totalKey).toBe(2_503 + 9 + 4);
  });

  test("has nothing of what is written while it is made", async () => {
    const state = stateWith(...some(), ...Array.from({ length: 500 }, (_, number) => put(`m${number}`, "x")));
    const before = contentOf(state);
    const steps = planBackup(frozenState(state));
    const write = () => state.apply(create(CommandSchema, { body: put("k1", "later") }), 1);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) write();
    const parts: Buffer[] = [];
    for (const part of backupBytes(step.value)) {
      parts.push(part);
      write();
      state.apply(create(CommandSchema, { body: compact(BigInt(state.revisions.current)) }), 1);
      finish(state.revisions.sweep());
    }
    expect(before.equals(contentOf(await again(Buffer.concat(parts))))).toBe(true);
  });
});

describe("a backup that is none any more", () => {
  test("is refused, wherever a byte is another one, or it is cut off", async () => {
    const whole = written(stateWith(...some()));
    for (let at = 0; at < whole.length; at += 997) {
      const other = Buffer.from(whole);
      other[at]! ^= 1;
      await expect(again(other)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
      await expect(again(whole.subarray(0, at))).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
  });

  test("is one of another kind, or of our former format: what to do is said", async () => {
    await expect(again(Buffer.alloc(512 + 32))).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    await expect(again(Buffer.from("LHBACK1\nand more"))).rejects.toMatchObject({ code: "VERSION_MISMATCH" });
    await expect(readBackup(join(folder, "none"), 1)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  });

  test("is refused if it has more than may be kept in memory", async () => {
    const state = stateWith(...some());
    writeFileSync(path, written(state));
    const refusal = readBackup(path, state.bytes - 1);
    await expect(refusal).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(refusal).rejects.toThrow("--quota-backend-bytes");
    expect((await readBackup(path, state.bytes)).state.bytes).toBe(state.bytes);
  });

  /** As `restore --skip-hash-check` reads it: pages have no checksum. */
  test("without its hash is read, or refused in one way, whatever stands in it", async () => {
    const generator = new Xorshift(seedOf());
    const random = () => generator.next();
    const whole = written(stateWith(...some())).subarray(0, -32);
    const ends = { read: 0, refused: 0 };
    for (let round = 0; round < 100; round += 1) {
      const other = Buffer.from(whole.subarray(0, round % 4 === 0 ? random() * whole.length : undefined));
      for (let flips = 0; flips < 1 + random() * 4; flips += 1) {
        // Headers and elements of pages are where numbers are.
        const page = Math.floor((random() * other.length) / 4096) * 4096;
        const at = page + Math.floor(random() ** 2 * 4096);
        if (at < other.length) other[at]! ^= 1 << Math.floor(random() * 8);
      }
      writeFileSync(path, other);
      await readBackup(path, 2 ** 30, { skipHashCheck: true }).then(
        () => (ends.read += 1),
        (error: unknown) => {
          expect(error).toMatchObject({ code: "LOG_CORRUPT" });
          ends.refused += 1;
        },
      );
    }
    expect(ends.read).toBeGreaterThan(2);
    expect(ends.refused).toBeGreaterThan(30);
  });
});

/** Pages of `key` begin here; its root, a branch, is the only one. */
const firstLeaf = 3 * 4096;
const branchOf = (file: Buffer) =>
  4096 * Array.from({ length: file.length / 4096 }, (_, id) => file.readUInt16LE(id * 4096 + 8)).indexOf(1);
const withMeta = (file: Buffer, changes: Partial<Meta>) => {
  const meta = { ...(readMeta(file.subarray(0, 4096)) as Meta), ...changes, transaction: 9n };
  file.set(metaPage(0, 2, { ...meta, pageBytes: 4096 }));
  if (changes.pageBytes !== undefined)
    file.set(metaPage(0, 2, { ...meta, pageBytes: changes.pageBytes }).subarray(0, 80));
};
const child = (index: number) => 16 + index * 16 + 8;

test.each<[string, (file: Buffer) => unknown, string]>([
  ["pages that are not there", (file) => file.writeUInt32LE(0xffff_ffff, firstLeaf + 12), "after the end"],
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
  ["a bucket among keys", (file) => file.writeUInt32LE(1, firstLeaf + 16), "within another one"],
  ["another number", (file) => file.writeUInt16LE(9, firstLeaf), "says that it is another one"],
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
  const puts = Array.from({ length: 400 }, (_, number) => put(`k${number}`, "v".repeat(1_000)));
  const file = written(stateWith(bootstrap, ...puts)).subarray(0, -32);
  damage(file);
  writeFileSync(path, file);
  const refusal = readBackup(path, Infinity, { skipHashCheck: true });
  await expect(refusal).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringContaining(why) as string,
  });
});

/** A file that has other things in its buckets than ours would have. */
function fileOf(state: CoreState, changes: Record<string, readonly [key: Uint8Array, value: Uint8Array][]>) {
  const ours = finish(bucketsOf(frozenState(state)));
  const buckets = ours.map(({ items, name }) => ({
    name,
    items: () => {
      const added = (changes[name] ?? []).map(([key, value]) => itemOf(key, value));
      const kept = [...items()].filter((item) => added.every((other) => !isSame(item, other)));
      return [...kept, ...added].sort((one, other) => Buffer.compare(one.key(), other.key()));
    },
  }));
  const database = Buffer.concat([...databasePages(finish(planDatabase(buckets)))]);
  return Buffer.concat([database, createHash("sha256").update(database).digest()]);
}

function itemOf(key: Uint8Array, value: Uint8Array): Item {
  return { keyBytes: key.length, valueBytes: value.length, key: () => key, value: () => value };
}

function isSame(one: Item, other: Item): boolean {
  return Buffer.compare(one.key(), other.key()) === 0;
}

describe("an etcd's file", () => {
  test("may have a compaction that is not finished: it is", async () => {
    const scheduled = [Buffer.from("scheduledCompactRev"), revisionOf(200, 0)] as const;
    const restored = await again(fileOf(stateWith(...some(), compact(100n)), { meta: [[...scheduled]] }));
    expect(areSame(restored, stateWith(...some(), compact(100n), compact(200n)))).toBe(true);
  });

  test("may have a key whose lease is gone: the key stays, and the state can be kept", async () => {
    const state = stateWith(...some(), put("orphan", "x", 5n));
    const { current } = state.revisions;
    const orphan = { ...state.revisions.get("orphan")!, lease: 99n };
    const key = [revisionOf(current, 0), keyValueBytes(orphan)] as const;
    const restored = await again(fileOf(state, { key: [[...key]] }));
    expect(restoreState(snapshotPieces(restored)).revisions.get("orphan")).toEqual(orphan);
  });

  test.each([
    ["a revision in another form", { key: [[Buffer.from("k"), keyValueBytes(version)]] }],
    ["a key of another revision", { key: [[revisionOf(900, 0), keyValueBytes(version)]] }],
    ["bytes that are no key", { key: [[revisionOf(900, 0), Buffer.from([0x0a, 0x7f])]] }],
    ["a lease with another id", { lease: [[idBytes(77n), leaseBytes({ id: 78n, ttl: 1n })]] }],
    ["a lease without end", { lease: [[idBytes(77n), leaseBytes({ id: 77n, ttl: 2n ** 62n })]] }],
    ["two leases of one name", { leasehold: [[idBytes(5n), Buffer.from("nächtlich")]] }],
    ["a compaction of nothing", { meta: [[Buffer.from("finishedCompactRev"), Buffer.of(1)]] }],
    ["a user that is none", { authUsers: [[Buffer.from("u"), Buffer.from([0x0a, 0x7f])]] }],
  ] satisfies [string, Parameters<typeof fileOf>[1]][])("is refused with %s", async (_what, changes) => {
    await expect(again(fileOf(stateWith(...some()), changes))).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining("what stands at") as string,
    });
  });
});

test("servers with the same history have the same hash of keys, whatever they have removed of it", () => {
  const one = stateWith(...some(), compact(200n));
  const other = stateWith(...some(), compact(100n), compact(200n));
  finish(other.revisions.sweep());
  const hash = (state: CoreState, revision: bigint) => finish(hashAt(frozenState(state), revision));
  expect(hash(one, 0n)).toBe(hash(other, 0n));
  expect(hash(one, 250n)).toBe(hash(other, 250n));
  expect(hash(one, 250n)).not.toBe(hash(one, 251n));
  expect(finish(hashOfAll(frozenState(one)))).toBe(finish(hashOfAll(frozenState(other))));
  expect(hash(one, 0n)).not.toBe(hash(stateWith(...some(), put("k1", "x"), compact(200n)), 0n));
});

test("a hash of what was compacted, or is not there yet, is refused as at etcd", () => {
  const state = frozenState(stateWith(...some(), compact(200n)));
  expect(() => finish(hashAt(state, 200n))).toThrow("required revision has been compacted");
  expect(() => finish(hashAt(state, 500n))).toThrow("required revision is a future revision");
});
