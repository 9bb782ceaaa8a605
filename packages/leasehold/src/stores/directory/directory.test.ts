import { mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../delta/store.js";
import { runStoreConformance } from "../conformance.js";
import { directoryOfRegister, makeNamedVersion, parseVersion, registerOfDirectory } from "./names.js";
import { keepingOf, openDirectoryStore } from "./open.js";
import { mustFail } from "./probe.js";
import { ungated } from "./files.js";
import { clean, RegisterDirectory } from "./register-directory.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (content: Uint8Array | undefined) => content && new TextDecoder().decode(content);

runStoreConformance({ describe, test }, "atomic", async () => {
  const root = await mkdtemp(join(tmpdir(), "leasehold-directory-"));
  return {
    kind: "atomic",
    open: (writer) => openDirectoryStore(pathToFileURL(root), { writer }),
    forget: () => rm(join(root, "leasehold"), { recursive: true }),
    close: () => rm(root, { recursive: true }),
  };
});

let root: string;
let home: string;
let stores: Store[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "leasehold-directory-"));
  home = join(root, "leasehold");
  stores = [];
});

afterEach(async () => {
  for (const store of stores) await store.close();
  await rm(root, { recursive: true, force: true });
});

async function openStore(path = root) {
  const store = await openDirectoryStore(pathToFileURL(path), { writer: "w" });
  stores.push(store);
  return store;
}

/** The directory of the registers. */
async function place(): Promise<string> {
  return join(home, (await readdir(home))[0]!);
}

async function read(store: Store, register = "r"): Promise<string | undefined> {
  const answer = await store.perform({ op: "read", register });
  if (answer.kind !== "cells") throw new Error(`a read was answered with ${JSON.stringify(answer)}`);
  return text(answer.cells[0]);
}

async function replace(store: Store, expected: string | undefined, next: string, register = "r") {
  const { id } = (await store.perform({ op: "read", register })) as { id: string };
  const cell = expected === undefined ? undefined : bytes(expected);
  return store.perform({ op: "replace", register, id, expected: cell, next: bytes(next) });
}

describe("a writer that was stopped", () => {
  test("before it wrote finds the token gone, however much has happened meanwhile", async () => {
    const store = await openStore();
    await replace(store, undefined, "v1");
    const paused = new RegisterDirectory(ungated, await place(), "r", 1_000, true);
    const seen = (await paused.read(undefined))!;
    for (let count = 1; count < 40; count += 1) await replace(store, `v${count}`, `v${count + 1}`);
    expect(await paused.replace(seen, bytes("ghost"))).toBeUndefined();
    expect(await read(store)).toBe("v40");
  });

  test("with its candidate written and the rename to come does not win, and its leftovers are removed", async () => {
    const store = await openStore();
    // Too long for a name.
    const nth = (count: number) => `v${count}`.padEnd(300);
    await replace(store, undefined, nth(1));
    const [token] = await readdir(join(await place(), "r-r"));
    const candidate = "2-00000000-0000-4000-8000-000000000000";
    const path = join(await place(), "r-r");
    await writeFile(join(path, token!, candidate), "ghost");
    await replace(store, nth(1), nth(2));
    await expect(rename(join(path, token!), join(path, candidate))).rejects.toThrow(/ENOENT/);
    expect(await read(store)).toBe(nth(2));
    for (let count = 2; count < 34; count += 1) await replace(store, nth(count), nth(count + 1));
    const [last] = await readdir(path);
    expect(await readdir(join(path, last!))).toEqual([last]);
    // Content in a name needs no file, so the last file is removed.
    await replace(store, nth(34), "v35");
    expect(await readdir(join(path, "35=v35"))).toEqual([]);
    expect(await read(await openStore())).toBe("v35");
  });

  test("keeps a candidate that may still win: cleaning stops at the present number", async () => {
    const names = ["3", "16", "16", "17", "x"].map((number) => `${number}-${globalThis.crypto.randomUUID()}`);
    for (const name of names) await writeFile(join(root, name), "");
    await clean(ungated, root, { number: 16, name: names[2]! });
    expect((await readdir(root)).sort()).toEqual([names[2]!, names[3]!, names[4]!].sort());
  });

  test("while it created a register leaves nothing that counts, and its leftovers are removed after an hour", async () => {
    const store = await openStore();
    await replace(store, undefined, "v1");
    const left = join(await place(), "new-00000000-0000-4000-8000-000000000000");
    await mkdir(join(left, "1-00000000-0000-4000-8000-000000000000"), { recursive: true });
    expect(await store.perform({ op: "list", prefix: "", registersMax: 10 })).toMatchObject({
      registers: new Map([
        ["r", [bytes("v1")]],
        ["leasehold.probe", [expect.anything()]],
      ]),
    });
    await openStore();
    expect(await readdir(await place())).toContain("new-00000000-0000-4000-8000-000000000000");
    await utimes(left, new Date(0), new Date(0));
    await openStore();
    expect((await readdir(await place())).filter((name) => !name.startsWith("r-"))).toEqual([]);
  });
});

describe("invalid content", () => {
  test("a directory of another program is not touched", async () => {
    await mkdir(home);
    await writeFile(join(home, "v2-of-a-later-version"), "");
    await expect(openStore()).rejects.toMatchObject({ code: "STORE_FOREIGN" });
    expect(await readdir(home)).toEqual(["v2-of-a-later-version"]);
  });

  test("a file in the place of the directory is refused with STORE_UNAVAILABLE", async () => {
    await writeFile(home, "mine");
    await expect(openStore()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  test("a register without content, or with one that is too long, is not free", async () => {
    const store = await openStore();
    await mkdir(join(await place(), "r-r", "thing"), { recursive: true });
    const answer = await store.perform({ op: "read", register: "r" });
    expect(answer).toMatchObject({ kind: "failed", error: { code: "STORE_FOREIGN" } });
    await replace(store, undefined, "v1".padEnd(300), "long");
    const [token] = await readdir(join(await place(), "r-long"));
    await writeFile(join(await place(), "r-long", token!, token!), "x".repeat(100_000));
    const other = await openStore();
    expect(await other.perform({ op: "read", register: "long" })).toMatchObject({
      kind: "failed",
      error: { code: "STORE_FOREIGN" },
    });
  });

  test("a directory that is missing, or disappears later, fails with STORE_UNAVAILABLE", async () => {
    await expect(openStore(join(root, "none"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await mkdir(join(root, "sub"));
    const store = await openStore(join(root, "sub"));
    await rm(join(root, "sub"), { recursive: true });
    const answer = await store.perform({ op: "read", register: "r" });
    expect(answer).toMatchObject({ kind: "failed", error: { code: "STORE_UNAVAILABLE" } });
  });

  test("an address with a query, a host or of another kind is refused with INVALID_URL", async () => {
    for (const url of ["file:///tmp?x", "file://host/tmp", "block:/tmp"]) {
      await expect(openDirectoryStore(new URL(url), { writer: "w" })).rejects.toMatchObject({
        code: "INVALID_URL",
      });
    }
  });
});

test("a directory in memory is not durable, and one on a disk is", async () => {
  const path = await mkdtemp("/dev/shm/leasehold-");
  try {
    const { traits } = await openStore(path);
    expect(traits.durable).toBe(false);
    expect((await openStore()).traits).toMatchObject({ durable: true });
  } finally {
    await rm(path, { recursive: true });
  }
});

test("the report names what an NFS server may forget unnoticed", () => {
  expect([keepingOf(0x6969), keepingOf(0xef53), keepingOf(0x0102_1994)]).toEqual([
    expect.stringMatching(/^NFS: .* sync.* async it may forget/),
    "a durable one",
    "tmpfs: it is empty after a restart",
  ]);
});

test("the report lists the trials of the probe", async () => {
  const { findings } = await openStore();
  expect(findings.every(({ ok }) => ok)).toBe(true);
  expect(findings.map(({ tried }) => tried).join("\n")).toMatch(/not empty[^]*was open[^]*at the same time/);
});

describe("names of versions", () => {
  test("contain every content that fits, and decode to it", () => {
    const all = Uint8Array.from({ length: 60 }, (_, index) => (index * 37) % 256);
    for (const content of [
      all,
      bytes(""),
      bytes("a/b%2f=%"),
      bytes("é".repeat(20)),
      bytes("x".repeat(250)),
    ]) {
      const { name } = makeNamedVersion(417, content)!;
      expect(name).toMatch(/^417=[ -.0-~]*$/);
      expect(parseVersion(name)).toEqual({ number: 417, name, content });
    }
    expect(makeNamedVersion(417, bytes("x".repeat(252)))).toBeUndefined();
    expect(makeNamedVersion(417, bytes("/".repeat(100)))).toBeUndefined();
  });

  test("are distinguished from other names", () => {
    const file = "3-00000000-0000-4000-8000-000000000000";
    expect(parseVersion(file)).toEqual({ number: 3, name: file });
    for (const name of ["name", "=x", "3", "3-x", "1234567890123456=x"])
      expect(parseVersion(name)).toBeUndefined();
  });
});

describe("names of directories", () => {
  test("are readable, distinct, and contain the register", () => {
    const registers = ["lease/reports/nightly", "A", "a", "%41", "..", "", "é", "x".repeat(198)];
    const directories = registers.map((register) => directoryOfRegister(register).directory);
    expect(directories[0]).toBe("r-lease%2freports%2fnightly");
    expect(new Set(directories.map((name) => name.toLowerCase())).size).toBe(registers.length);
    expect(directories.map(registerOfDirectory)).toEqual(registers);
    expect(registerOfDirectory("r-%zz")).toBeUndefined();
    expect(registerOfDirectory("r-A")).toBeUndefined();
    expect(directoryOfRegister("x".repeat(600)).directory.length).toBeLessThan(100);
  });
});

test.each(["EROFS", "ENOSPC", "EIO"])(
  "%s during a probe says that the store is away, not that it is unfit",
  async (code) => {
    const refusal = Object.assign(new Error("no"), { code });
    await expect(mustFail("created what exists", () => Promise.reject(refusal))).rejects.toBe(refusal);
    const expected = Object.assign(new Error("no"), { code: "EEXIST" });
    expect(await mustFail("created what exists", () => Promise.reject(expected))).toMatchObject({ ok: true });
  },
);
