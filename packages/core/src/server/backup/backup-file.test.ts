import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  areSame,
  bootstrap,
  compact,
  contentOf,
  frozenState,
  put,
  remove,
  some,
  stateWith,
  written,
} from "../../../../../test/support/backups.js";
import type { CommandBody } from "../../replica/context.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { backupBytes, planBackup } from "./backup-file.js";
import { type Meta, metaPage, readMeta } from "./bolt/format.js";
import { hashOfAll, hashAt } from "./hashes.js";
import { backupStatus, readBackup } from "./read-backup.js";

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

describe("a backup", () => {
  test("has the whole state, and the hash that etcdctl expects", async () => {
    const state = stateWith(...some());
    const bytes = written(state);
    expect(bytes.length % 512).toBe(32);
    expect(areSame(await again(bytes), state)).toBe(true);
  });

  test("may have values that look like a newer first page", async () => {
    const value = Buffer.alloc(100_000, "x");
    const stateOf = () => stateWith(bootstrap, { case: "put", value: { key: Buffer.from("a"), value } });
    const before = written(stateOf());
    const lure = { ...(readMeta(before.subarray(0, 4096)) as Meta), pageBytes: 16_384, transaction: 99n };
    value.set(metaPage(0, 2, lure).subarray(0, 80), 16_384 - before.indexOf(value));
    const state = stateOf();
    expect(areSame(await again(written(state)), state)).toBe(true);
  });

  test("has everything that was not compacted, whether the rest has been removed or not", async () => {
    const state = stateWith(...some(), compact(250n), put("later", "x"), remove("k9"));
    const bytes = written(state);
    finish(state.revisions.sweep());
    expect(written(state).equals(bytes)).toBe(true);
    const restored = await again(bytes);
    expect(areSame(restored, state)).toBe(true);
    expect(restored.revisions.hasGarbage).toBe(false);
    expect([restored.bytes, restored.revisions.live]).toEqual([state.bytes, state.revisions.live]);
  });

  test("of a state whose keys were all deleted and compacted keeps the revision", async () => {
    const state = stateWith(bootstrap, put("a", "1"), remove("a"), put("b", "2"), remove("b"), compact(5n));
    const restored = await again(written(state));
    expect(restored.revisions.current).toBe(5);
    expect(areSame(restored, state)).toBe(true);
    expect(areSame(await again(written(stateWith())), stateWith())).toBe(true);
  });

  test("may have keys and values of any size, and nested pages", async () => {
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

  test("has nothing written while it is made", async () => {
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

describe("a damaged backup", () => {
  test("is refused, wherever a byte has changed or it is cut off", async () => {
    const whole = written(stateWith(...some()));
    for (let at = 0; at < whole.length; at += 997) {
      const other = Buffer.from(whole);
      other[at]! ^= 1;
      await expect(again(other)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
      await expect(again(whole.subarray(0, at))).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
  });

  test("is refused with advice if it is another kind of file, or has our former format", async () => {
    await expect(again(Buffer.alloc(512 + 32))).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    await expect(again(Buffer.from("LHBACK1\nand more"))).rejects.toMatchObject({ code: "VERSION_MISMATCH" });
    await expect(readBackup(join(folder, "none"), 1)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  });

  test("is refused if it exceeds the memory bound", async () => {
    const state = stateWith(...some());
    writeFileSync(path, written(state));
    const refusal = readBackup(path, state.bytes - 1);
    await expect(refusal).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(refusal).rejects.toThrow("--quota-backend-bytes");
    expect((await readBackup(path, state.bytes)).state.bytes).toBe(state.bytes);
  });
});

test("servers with the same history have the same hash of keys, whatever compacted versions they have removed", () => {
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

test("a hash at a compacted or future revision is refused, as in etcd", () => {
  const state = frozenState(stateWith(...some(), compact(200n)));
  expect(() => finish(hashAt(state, 200n))).toThrow("required revision has been compacted");
  expect(() => finish(hashAt(state, 500n))).toThrow("required revision is a future revision");
});
