import { createHash } from "node:crypto";
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
  written,
} from "../../../../test/support/backups.js";
import { effort } from "../../../../test/support/effort.js";
import { seedOf } from "../../../../test/support/seed.js";
import { Xorshift } from "../../../common/xorshift.js";
import type { CommandBody } from "../../replica/context.js";
import { CommandSchema } from "../../gen/leasehold/command_pb.js";
import { restoreState, snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { type Meta, metaPage, readMeta } from "./bolt/format.js";
import { BoltError, BoltFile } from "./bolt/read.js";
import { databasePages, planDatabase } from "./bolt/write.js";
import { bucketsOf } from "./buckets.js";
import { readBackup } from "./read-backup.js";
import { idBytes, keyValueBytes, leaseBytes, revisionOf } from "./records.js";
import { stateOf, TooLargeError } from "./state.js";
import { statusOf } from "./status.js";

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
let pagesOnce: Buffer | undefined;
function manyPages(): Buffer {
  const puts = () => Array.from({ length: 400 }, (_, number) => put(`k${number}`, "v".repeat(1_000)));
  pagesOnce ??= written(stateWith(bootstrap, ...puts())).subarray(0, -32);
  return pagesOnce;
}
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
  [
    "elements that overlap",
    (file) => file.writeUInt32LE(file.readUInt32LE(firstLeaf + 36) - 1, firstLeaf + 36),
    "begins within what stands before it",
  ],
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
  const file = Buffer.from(manyPages());
  damage(file);
  writeFileSync(path, file);
  const refusal = readBackup(path, Infinity, { skipHashCheck: true });
  await expect(refusal).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringContaining(why) as string,
  });
});

describe("an etcd's file", () => {
  test("may have a compaction that is not finished: it is", async () => {
    const scheduled = [Buffer.from("scheduledCompactRev"), revisionOf(200, 0)] as const;
    const restored = await again(fileOf(stateWith(...some(), compact(100n)), { meta: [[...scheduled]] }));
    expect(areSame(restored, stateWith(...some(), compact(100n), compact(200n)))).toBe(true);
  });

  test("may have a key whose lease is gone: it hangs on none at any server, also when that id is granted again", async () => {
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
    "with rights on at revision %s has them on, wherever a snapshot of it is",
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
    // What cannot be read stands behind.
    await expect(refusal).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(readBackup(path, Infinity)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
  });

  test("with a bucket twice, or thousands of them, is refused", async () => {
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
      message: expect.stringContaining("what stands at") as string,
    });
  });
});

const removeAll: CommandBody = { case: "deleteRange", value: { key: Buffer.of(1), rangeEnd: Buffer.of(0) } };

/** What state may take, and what is read of a file at most. */
const bytesMax = 2 ** 20;

interface Outcome {
  readonly state: CoreState | { readonly error: unknown };
  /** Of who only goes through it. */
  readonly errors: readonly unknown[];
  /** Of keys and values, and of the pages that they stand in. */
  readonly told: number;
  readonly asked: number;
}

function outcomeOf(bytes: Buffer): Outcome {
  let asked = 0;
  const source = {
    bytes: bytes.length,
    read: (at: number, length: number) => {
      asked += length;
      if (at + length > bytes.length) throw new Error("more than there is was asked for");
      return Buffer.from(bytes.subarray(at, at + length));
    },
  };
  const of = <Result>(read: (file: BoltFile) => Result) => {
    try {
      return read(new BoltFile(source, 2 ** 24));
    } catch (error) {
      return { error };
    }
  };
  let told = 0;
  const walked = of((file) => {
    for (const { items } of file.buckets())
      for (const { key, value } of items) told += key.length + value.length;
  });
  const askedOnce = asked;
  const errors = [walked, of((file) => void finish(statusOf(file)))].flatMap((each) => each?.error ?? []);
  return { state: of((file) => finish(stateOf(file, bytesMax))), errors, told, asked: askedOnce };
}

/** Damage where a reader goes by what is written: heads of pages, elements, records, the first pages. */
class Damage {
  readonly #random: Xorshift;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  /** Numbers at which readers go wrong, and others near what stands there. */
  #number(now: number, max: number): number {
    const near = now + this.below(65) - 32;
    return Math.min(
      max,
      Math.max(0, this.#oneOf([0, 1, now ^ (1 << this.below(16)), near, near, max >>> 1, max])),
    );
  }

  do(file: Buffer): void {
    const pages = file.length / 4096;
    const page = 4096 * (2 + this.below(pages - 2));
    const elements = file.readUInt16LE(page + 10);
    const element = page + 16 + 16 * this.below(Math.max(1, Math.min(elements, 255)));
    const kinds = [
      () => file.writeUInt16LE(this.#number(elements, 0xffff), page + 10),
      () => file.writeUInt32LE(this.#number(file.readUInt32LE(page + 12), 0xffff_ffff), page + 12),
      () => file.writeUInt16LE(this.#oneOf([0, 1, 2, 4, 0x10]), page + 8),
      () => this.#uint32(file, element + 4 * this.below(4)),
      () => this.#uint32(file, element + 4 * this.below(4)),
      // Two of a page change: what one begins the other ends.
      () => file.copy(file, element, page + 16 + 16 * this.below(8), element + 16),
      () => file.writeUInt32LE(this.below(pages), element + 8),
      () => file.copy(file, page, 4096 * (2 + this.below(pages - 2)), page + 4096),
      () => (file[page + this.below(4096)]! ^= 1 << this.below(8)),
      () => file.fill(this.#oneOf([0, 0x12, 0xff]), page + this.below(4096), page + 4096),
      () => this.#meta(file, pages),
    ];
    this.#oneOf(kinds)();
  }

  #uint32(file: Buffer, at: number): void {
    file.writeUInt32LE(this.#number(file.readUInt32LE(at), 0xffff_ffff), at);
  }

  #meta(file: Buffer, pages: number): void {
    const meta = readMeta(file.subarray(0, 4096)) as Meta;
    const changes: Partial<Meta>[] = [
      { root: this.below(pages + 2) },
      { pages: this.#number(pages, 2 ** 31) },
    ];
    withMeta(file, { ...meta, ...this.#oneOf(changes) });
  }
}

const small = () => stateWith(...some().slice(0, 40), ...some().slice(-12));
const large = () =>
  stateWith(
    ...some(),
    ...Array.from({ length: 60 }, (_, number) => put(`v${number}`, "v".repeat(number * 90))),
  );

test("of a file that is damaged on purpose no more is told than is in it, and it is read or refused as damaged", async () => {
  const damage = new Damage(seedOf());
  const files = [small, large].map((state) => written(state()).subarray(0, -32));
  const ends = { read: 0, refused: 0, tooLarge: 0 };
  for (let round = 0; round < 60 * effort; round += 1) {
    const file = Buffer.from(files[round % files.length]!);
    for (let times = 1 + damage.below(4); times > 0; times -= 1) damage.do(file);
    const { asked, errors, state, told } = outcomeOf(file);
    expect(told).toBeLessThanOrEqual(file.length);
    expect(asked).toBeLessThanOrEqual(2 * file.length + 70 * 1_024);
    for (const error of errors) expect(error).toBeInstanceOf(BoltError);
    if ("error" in state) {
      const isTooLarge = state.error instanceof TooLargeError;
      if (!isTooLarge) expect(state.error).toBeInstanceOf(BoltError);
      ends[isTooLarge ? "tooLarge" : "refused"] += 1;
    } else {
      ends.read += 1;
      expect(state.bytes).toBeLessThanOrEqual(bytesMax);
      const copy = restoreState(snapshotPieces(state));
      expect(areSame(copy, state)).toBe(true);
      // Whatever stood there, what comes later has the same outcome at all servers.
      for (const body of [put("k1", "later"), removeAll, compact(BigInt(state.revisions.current))])
        for (const server of [state, copy]) server.apply(create(CommandSchema, { body }), 1);
      expect(areSame(copy, state)).toBe(true);
    }
    if (round % 20 !== 0) continue;
    writeFileSync(path, Buffer.concat([file, createHash("sha256").update(file).digest()]));
    const whole = await readBackup(path, bytesMax).catch((problem: unknown) => problem);
    if ("error" in state)
      expect(whole).toMatchObject({
        code: state.error instanceof TooLargeError ? "INVALID_CONFIG" : "LOG_CORRUPT",
      });
    else
      expect((whole as { state: CoreState }).state.revisions.current).toBeLessThan(state.revisions.current);
  }
  expect(ends.read).toBeGreaterThan(4 * effort);
  expect(ends.refused).toBeGreaterThan(15 * effort);
});
