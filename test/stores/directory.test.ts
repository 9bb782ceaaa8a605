import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDirectoryStore } from "../../packages/leasehold/src/stores/directory/open.js";
import { WriterProcess } from "./writer-process.js";

const run = promisify(execFile);
const register = "lease/counter";
const isRoot = process.getuid?.() === 0;

let root: string;
let url: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "leasehold-stores-"));
  url = pathToFileURL(root).href;
});

afterEach(() => rm(root, { recursive: true, force: true }));

/** The counter's value. It must be complete. */
async function readCounter(): Promise<number> {
  const store = await openDirectoryStore(new URL(url), { writer: "reader" });
  const answer = await store.perform({ op: "read", register });
  await store.close();
  if (answer.kind !== "cells") throw new Error(`a read was answered with ${JSON.stringify(answer)}`);
  const [cell] = answer.cells.map((content) => new TextDecoder().decode(content));
  if (cell === undefined) return 0;
  expect(cell).toMatch(/^\d+ \d+ \d+ x{300}$/);
  return Number(cell.split(" ")[0]);
}

describe("processes on one directory", () => {
  test("that are killed at any moment leave the old or the new content, and the next process continues", async () => {
    let confirmed = 0;
    for (let round = 0; round < 25; round++) {
      const writer = new WriterProcess(url, "forever");
      await writer.hasBegun();
      await new Promise((resolve) => setTimeout(resolve, 60 * Math.random()));
      writer.signal("SIGKILL");
      await writer.ended;
      expect(writer.errors).toBe("");
      expect(writer.confirmed[0]).toBeGreaterThan(confirmed);
      confirmed = writer.confirmed.at(-1)!;
      const found = await readCounter();
      expect([confirmed, confirmed + 1]).toContain(found);
      confirmed = found;
    }
    expect(confirmed).toBeGreaterThan(100);
  });

  test("that count at the same time lose no increment", async () => {
    const writers = Array.from({ length: 8 }, () => new WriterProcess(url, 50));
    expect(await Promise.all(writers.map((writer) => writer.ended))).toEqual(Array(8).fill(0));
    const confirmed = writers.flatMap((writer) => writer.confirmed).sort((a, b) => a - b);
    expect(confirmed).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
    expect(await readCounter()).toBe(400);
  });

  test("that are stopped while they write, and resume later, undo nothing", async () => {
    const writers = Array.from({ length: 3 }, () => new WriterProcess(url, "forever"));
    await Promise.all(writers.map((writer) => writer.hasBegun()));
    for (let round = 0; round < 20; round++) {
      const stopped = writers[round % 3]!;
      stopped.signal("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, 20 + 60 * Math.random()));
      stopped.signal("SIGCONT");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const writer of writers) writer.signal("SIGKILL");
    await Promise.all(writers.map((writer) => writer.ended));
    const confirmed = writers.flatMap((writer) => writer.confirmed).sort((a, b) => a - b);
    expect(new Set(confirmed).size).toBe(confirmed.length);
    const found = await readCounter();
    // Each of the three may have been killed after its write and before the confirmation.
    expect(found - confirmed.length).toBeGreaterThanOrEqual(0);
    expect(found - confirmed.length).toBeLessThanOrEqual(3);
  });
});

describe.skipIf(!isRoot)("a directory that cannot be written (needs root, to mount)", () => {
  const write = async (next: string) => {
    const store = await openDirectoryStore(new URL(url), { writer: "w" });
    const { id } = (await store.perform({ op: "read", register: "lease/other" })) as { id: string };
    const content = new TextEncoder().encode(next);
    const answers = [];
    for (let count = 0; count < 200; count++) {
      const request = {
        op: "replace",
        register: `lease/${count}`,
        id,
        expected: undefined,
        next: content,
      } as const;
      answers.push(await store.perform(request));
      if (answers.at(-1)!.kind === "failed") break;
    }
    return { store, answers };
  };

  const mounted = async (options: string, use: () => Promise<void>) => {
    await run("mount", ["-t", "tmpfs", "-o", options, "tmpfs", root]);
    try {
      await use();
    } finally {
      await run("umount", [root]);
    }
  };

  test("refuses a write with STORE_FULL when it is full, and its content can still be read", async () => {
    await mounted("size=256k", async () => {
      const { store, answers } = await write("x".repeat(8_000));
      expect(answers.at(-1)).toMatchObject({ kind: "failed", error: { code: "STORE_FULL" } });
      expect(answers.length).toBeGreaterThan(5);
      const first = await store.perform({ op: "read", register: "lease/0" });
      expect(first.kind === "cells" && first.cells[0]?.length).toBe(8_000);
      const failed = await store.perform({ op: "read", register: `lease/${answers.length - 1}` });
      expect(failed).toMatchObject({ kind: "cells", cells: [] });
    });
  });

  test("refuses a write, and to be opened, with STORE_READ_ONLY when it is mounted read-only", async () => {
    await mounted("size=1m", async () => {
      const { store } = await write("content");
      await run("mount", ["-o", "remount,ro", root]);
      const { id } = (await store.perform({ op: "read", register: "lease/0" })) as { id: string };
      const next = new TextEncoder().encode("next");
      const expected = new TextEncoder().encode("content");
      const answer = await store.perform({ op: "replace", register: "lease/0", id, expected, next });
      expect(answer).toMatchObject({ kind: "failed", error: { code: "STORE_READ_ONLY" } });
      await expect(openDirectoryStore(new URL(url), { writer: "w" })).rejects.toMatchObject({
        code: "STORE_READ_ONLY",
      });
    });
  });

  test("is not confused with the empty mount point below it when it is unmounted", async () => {
    let store!: Awaited<ReturnType<typeof write>>["store"];
    const onlyMounted = () => openDirectoryStore(new URL(`${url}?mounted`), { writer: "w" });
    await mounted("size=1m", async () => {
      ({ store } = await write("content"));
      await (await onlyMounted()).close();
    });
    await expect(onlyMounted()).rejects.toMatchObject({
      message: expect.stringMatching(/nothing is mounted there/),
    });
    expect(await readdir(root)).toEqual([]);
    expect(await store.perform({ op: "read", register: "lease/0" })).toMatchObject({
      kind: "failed",
      error: { code: "STORE_UNAVAILABLE", message: expect.stringMatching(/mounted or unmounted/) },
    });
  });

  test("refuses a writer with STORE_PERMISSION when it belongs to another user", async () => {
    const home = join(root, "private");
    await mkdir(home);
    await chmod(root, 0o755);
    const writer = new WriterProcess(pathToFileURL(home).href, 1, 65_534);
    expect(await writer.ended).not.toBe(0);
    expect(writer.errors).toContain("STORE_PERMISSION");
  });
});
