import { mkdtemp, open, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store, StoreAnswer } from "../../delta/store.js";
import { alignedBytes } from "./direct-file.js";
import { sizeBytesOf, unitBytes } from "./layout.js";
import { openBlockStore } from "./open.js";

const bytes = (content: string) => new TextEncoder().encode(content);

/** Small and fast: 8 slots, and a δ that the disk under test can keep. */
const query = "format&slots=16&regions=32&delay=100ms";
const mediumBytes = sizeBytesOf({ slots: 16, regions: 32 });

async function overwrite(path: string, position: number, content: Uint8Array): Promise<void> {
  const file = await open(path, "r+");
  await file.write(content, 0, content.length, position);
  await file.sync();
  await file.close();
}

let directory: string;
let path: string;
let stores: Store[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "leasehold-block-"));
  path = join(directory, "medium");
  await writeFile(path, "");
  await truncate(path, mediumBytes);
  stores = [];
});

afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await rm(directory, { recursive: true });
});

async function openStore(writer: string, parameters = query) {
  const store = await openBlockStore(new URL(`block:${path}?${parameters}`), { writer });
  stores.push(store);
  return store;
}

const read = (store: Store, register: string): Promise<StoreAnswer> =>
  store.perform({ op: "read", register });

describe("formatting", () => {
  test("is done only on request, and by many at once only once", async () => {
    await expect(openStore("w", "slots=4")).rejects.toMatchObject({ code: "STORE_UNFIT" });
    expect((await readFile(path)).every((byte) => byte === 0)).toBe(true);
    const opened = await Promise.all(["a", "b", "c"].map((writer) => openStore(writer)));
    const answers = await Promise.all(opened.map((store) => read(store, "r")));
    expect(new Set(answers.map((answer) => "id" in answer && answer.id)).size).toBe(1);
    expect((await openStore("d", "")).findings.map(({ seen }) => seen).join()).toMatch(
      /of 16, .*what was written/,
    );
  });

  test("never touches a medium that is not empty, wherever its data is", async () => {
    for (const position of [0, unitBytes * 5 + 17, mediumBytes - 1]) {
      await truncate(path, 0);
      await truncate(path, mediumBytes);
      await overwrite(path, position, bytes("!"));
      const before = await readFile(path);
      await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_FOREIGN" });
      expect((await readFile(path)).equals(before)).toBe(true);
    }
  });

  test("is refused when the format is newer, the first unit damaged or the medium too short", async () => {
    await overwrite(path, 0, bytes("leasehold-block/3 {} 00000000"));
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_FOREIGN" });
    await overwrite(path, 0, bytes("leasehold-block/2 {} 00000000"));
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await truncate(path, 0);
    await truncate(path, mediumBytes);
    await (await openStore("w")).close();
    await truncate(path, mediumBytes / 2);
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_UNFIT" });
    await truncate(path, 100 * unitBytes);
    await expect(openStore("w", "format&slots=100")).rejects.toMatchObject({ code: "STORE_UNFIT" });
  });

  test("is refused with INVALID_URL for invalid addresses", async () => {
    for (const parameters of ["slots=0", "slots=x", "regions=1e9", "nonsense", "delay=1s&slot-ttl=2s"]) {
      await expect(openStore("w", parameters)).rejects.toMatchObject({ code: "INVALID_URL" });
    }
  });
});

test("memory for direct I/O begins at a page and has the requested length", () => {
  const memory = alignedBytes(70_000);
  expect(memory.byteOffset).toBe(0);
  expect(memory.length).toBe(70_000);
});
