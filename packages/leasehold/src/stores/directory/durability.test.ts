import type fs from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openDirectoryStore } from "./open.js";
import { Files } from "./files.js";

/**
 * The operations on the file system, in the order of their completion: `sync <name>`, `rename <name> <name>`.
 */
const done = vi.hoisted(() => [] as string[]);

/** The next sync of a directory with this name fails, and the one after it does not. */
const failing = vi.hoisted(() => ({ name: undefined as string | undefined }));

vi.mock("node:fs", async (original) => {
  const real = await original<{ default: typeof fs }>();
  const names = new Map<number, string>();
  const { open, fsync, rename } = real.default;
  const traced = {
    ...real.default,
    open: (path: string, flags: string, ended: (error: Error | null, file: number) => void) =>
      open(path, flags, (error, file) => {
        names.set(file, basename(path));
        ended(error, file);
      }),
    fsync: (file: number, ended: (error: Error | null) => void) =>
      fsync(file, (error) => {
        const name = names.get(file)!;
        const isFailing = failing.name !== undefined && failing.name === name;
        if (isFailing) failing.name = undefined;
        done.push(`${isFailing ? "failed" : "sync"} ${name}`);
        ended(isFailing ? Object.assign(new Error("EIO: i/o error, fsync"), { code: "EIO" }) : error);
      }),
    rename: (from: string, to: string, ended: (error: Error | null) => void) =>
      rename(from, to, (error) => {
        done.push(`rename ${basename(from)} ${basename(to)}`);
        ended(error);
      }),
  };
  return { ...real, default: traced };
});

let root: string;

beforeEach(async () => (root = await mkdtemp(join(tmpdir(), "leasehold-directory-"))));
afterEach(() => rm(root, { recursive: true }));

const bytes = (text: string) => new TextEncoder().encode(text);

/** The operations of a write up to its answer, with the names of the register's previous version. */
async function written(expected: string | undefined, next: string) {
  const store = await openDirectoryStore(pathToFileURL(root), { writer: "w" });
  const { id } = (await store.perform({ op: "read", register: "r" })) as { id: string };
  const before = await readdir(join(root, "leasehold", id, "r-r")).catch(() => []);
  done.length = 0;
  const cell = expected === undefined ? undefined : bytes(expected);
  const request = { op: "replace", register: "r", id, expected: cell, next: bytes(next) } as const;
  expect(await store.perform(request)).toMatchObject({ kind: "written" });
  const what = done.slice();
  await store.close();
  return { what, id, token: before[0] };
}

/** Too long for a name. */
const long = "x".repeat(300);

test("a register appears when all names in it are on the disk, and its own name is there before the answer", async () => {
  const { what, id } = await written(undefined, "v1");
  const at = what.findIndex((each) => each.startsWith("rename new-"));
  const building = what[at]!.split(" ")[1]!;
  const [version] = await readdir(join(root, "leasehold", id, "r-r"));
  expect(version).toBe("1=v1");
  expect(what.slice(0, at).toSorted()).toEqual([`sync ${version}`, `sync ${building}`].toSorted());
  expect(what.slice(at)).toEqual([`rename ${building} r-r`, `sync ${id}`]);
});

test("a register with a content in a file appears when that is on the disk, too", async () => {
  const { what, id } = await written(undefined, long);
  const at = what.findIndex((each) => each.startsWith("rename new-"));
  const building = what[at]!.split(" ")[1]!;
  const [version] = await readdir(join(root, "leasehold", id, "r-r"));
  // The content, its directory of the same name, and the directory around that.
  expect(what.slice(0, at).toSorted()).toEqual(
    [`sync ${version}`, `sync ${version}`, `sync ${building}`].toSorted(),
  );
  expect(what.slice(at)).toEqual([`rename ${building} r-r`, `sync ${id}`]);
});

test("a content in a name is replaced by one rename, which is on the disk before the answer", async () => {
  await written(undefined, "v1");
  await written("v1", "v2");
  const { what } = await written("v2", "a/b 100%");
  expect(what).toEqual(["rename 2=v2 3=a%2fb 100%25", "sync r-r"]);
});

test("the first replacement syncs the register's own name too: its maker may have stopped before", async () => {
  await written(undefined, "v1");
  const { what, id } = await written("v1", "v2");
  expect(what[0]).toBe("rename 1=v1 2=v2");
  expect(what.slice(1).toSorted()).toEqual(["sync r-r", `sync ${id}`]);
});

test("a content in a file replaces another when it and its name are on the disk, and the replacement is there before the answer", async () => {
  await written(undefined, "v1");
  await written("v1", "v2");
  const { what, token } = await written("v2", long);
  const at = what.findIndex((each) => each.startsWith("rename"));
  const [, , version] = what[at]!.split(" ");
  expect(what.slice(0, at).toSorted()).toEqual([`sync ${token}`, `sync ${version}`].toSorted());
  expect(what.slice(at)).toEqual([`rename ${token} ${version}`, "sync r-r"]);
});

/** A write whose last sync fails, and the same write again. */
async function writtenAgain(expected: string | undefined, next: string, failingSync: (id: string) => string) {
  const store = await openDirectoryStore(pathToFileURL(root), { writer: "w" });
  const { id } = (await store.perform({ op: "read", register: "r" })) as { id: string };
  const cell = expected === undefined ? undefined : bytes(expected);
  const request = { op: "replace", register: "r", id, expected: cell, next: bytes(next) } as const;
  failing.name = failingSync(id);
  const first = await store.perform(request);
  done.length = 0;
  const second = await store.perform(request);
  const read = await store.perform({ op: "read", register: "r" });
  await store.close();
  return { first, second, what: done.slice(), id, read };
}

test.each([
  ["in a name", "v2"],
  ["in a file", long],
])("a content %s whose sync has failed is written again before it counts as written", async (_, next) => {
  await written(undefined, "v1");
  const { first, second, what, read } = await writtenAgain("v1", next, () => "r-r");
  expect(first).toMatchObject({ kind: "failed", error: { code: "STORE_UNAVAILABLE" } });
  expect(second).toMatchObject({ kind: "written" });
  const at = what.findIndex((each) => each.startsWith("rename"));
  expect(at).toBeGreaterThanOrEqual(0);
  expect(what.slice(at + 1)).toContain("sync r-r");
  expect(read).toMatchObject({ kind: "cells", cells: [bytes(next)] });
});

test("a register whose own name could not be synced is synced with it before it counts as written", async () => {
  const { first, second, what, id } = await writtenAgain(undefined, "v1", (marker) => marker);
  expect(first).toMatchObject({ kind: "failed", error: { code: "STORE_UNAVAILABLE" } });
  expect(second).toMatchObject({ kind: "written" });
  expect(what).toContain(`sync ${id}`);
  expect(what).toContain("sync r-r");
});

test("one sync of a directory serves all callers before it began, and none after", async () => {
  const begun: (() => void)[] = [];
  const files = new Files({
    run: async (call) => {
      await new Promise<void>((resolve) => begun.push(resolve));
      return call();
    },
  });
  const ended: string[] = [];
  const ask = (name: string) => files.syncDirectoryTogether(root).then(() => ended.push(name));
  const all = [ask("first"), ask("second"), ask("third")];
  done.length = 0;
  const goOn = async (syncs: number) => {
    while (done.length < syncs) {
      for (const resolve of begun.splice(0)) resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  await goOn(1);
  expect(ended).toEqual(["first"]);
  await goOn(2);
  await Promise.all(all);
  expect([ended, done.length]).toEqual([["first", "second", "third"], 2]);
});
