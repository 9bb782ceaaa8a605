import { mkdtemp, open, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store, StoreAnswer } from "../../delta/store.js";
import { runStoreConformance } from "../conformance.js";
import { alignedBytes } from "./direct-file.js";
import { encodeSuperblock, sizeBytesOf, unitBytes } from "./layout.js";
import { openBlockStore } from "./open.js";

const bytes = (content: string) => new TextEncoder().encode(content);

/** Small and fast: 8 slots, a δ that a disk under test keeps. */
const query = "format&slots=16&regions=32&delay=100ms";
const mediumBytes = sizeBytesOf({ slots: 16, regions: 32 });

runStoreConformance({ describe, test }, "slotted", async () => {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-block-"));
  const path = join(directory, "medium");
  await writeFile(path, "");
  await truncate(path, mediumBytes);
  // Laid out beforehand: the wait of a format is for those who do it at the same time.
  const layOut = async () => {
    const layout = {
      id: globalThis.crypto.randomUUID(),
      slots: 16,
      regions: 32,
      delayMs: 100,
      slotLeaseMs: 10_000,
    };
    await overwrite(path, 0, encodeSuperblock(layout));
  };
  await layOut();
  return {
    kind: "slotted",
    open: (writer) => openBlockStore(new URL(`block:${path}`), { writer }),
    async forget() {
      await truncate(path, 0);
      await truncate(path, mediumBytes);
      await layOut();
    },
    close: () => rm(directory, { recursive: true }),
  };
});

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

const put = (store: Store, register: string, content: string): Promise<StoreAnswer> =>
  store.perform({ op: "put", register, next: bytes(content) });
const read = (store: Store, register: string): Promise<StoreAnswer> =>
  store.perform({ op: "read", register });

describe("laying out", () => {
  test("is done only when it is asked for, and by many at once only once", async () => {
    await expect(openStore("w", "slots=4")).rejects.toMatchObject({ code: "STORE_UNFIT" });
    expect((await readFile(path)).every((byte) => byte === 0)).toBe(true);
    const opened = await Promise.all(["a", "b", "c"].map((writer) => openStore(writer)));
    const answers = await Promise.all(opened.map((store) => read(store, "r")));
    expect(new Set(answers.map((answer) => "id" in answer && answer.id)).size).toBe(1);
    expect((await openStore("d", "")).findings.map(({ seen }) => seen).join()).toMatch(
      /of 16, .*what was written/,
    );
  });

  test("never touches what is not empty, wherever it is", async () => {
    for (const position of [0, unitBytes * 5 + 17, mediumBytes - 1]) {
      await truncate(path, 0);
      await truncate(path, mediumBytes);
      await overwrite(path, position, bytes("!"));
      const before = await readFile(path);
      await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_FOREIGN" });
      expect((await readFile(path)).equals(before)).toBe(true);
    }
  });

  test("a newer format, a damaged first unit, a medium that is too short", async () => {
    await overwrite(path, 0, bytes("leasehold-block/2 {} 00000000"));
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_FOREIGN" });
    await overwrite(path, 0, bytes("leasehold-block/1 {} 00000000"));
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await truncate(path, 0);
    await truncate(path, mediumBytes);
    await (await openStore("w")).close();
    await truncate(path, mediumBytes / 2);
    await expect(openStore("w")).rejects.toMatchObject({ code: "STORE_UNFIT" });
    await truncate(path, 100 * unitBytes);
    await expect(openStore("w", "format&slots=100")).rejects.toMatchObject({ code: "STORE_UNFIT" });
  });

  test("addresses that make no sense", async () => {
    for (const parameters of ["slots=0", "slots=x", "regions=1e9", "nonsense", "delay=1s&slot-ttl=2s"]) {
      await expect(openStore("w", parameters)).rejects.toMatchObject({ code: "INVALID_URL" });
    }
  });
});

describe("a unit", () => {
  test("that is damaged or foreign is an error with its place, and nothing is written over it", async () => {
    const one = await openStore("one");
    await put(one, "r", "content");
    const position = (await readFile(path)).indexOf("leasehold-unit/1");
    await overwrite(path, position + 70, bytes("X"));
    const damaged = await readFile(path);
    const two = await openStore("two");
    expect(await read(two, "r")).toMatchObject({ kind: "failed", error: { code: "STORE_CORRUPT" } });
    expect(String(((await read(two, "r")) as { error: Error }).error)).toContain(String(position));
    await overwrite(path, position, bytes("another-format"));
    expect(await read(two, "r")).toMatchObject({ kind: "failed", error: { code: "STORE_FOREIGN" } });
    expect((await readFile(path)).subarray(position + 20, position + 4_096)).toEqual(
      damaged.subarray(position + 20, position + 4_096),
    );
  });

  test("that is full refuses further registers and keeps what it has", async () => {
    const store = await openStore("w", "format&slots=4&regions=1&delay=100ms");
    const long = "x".repeat(1_500);
    expect(await put(store, "a", long)).toMatchObject({ kind: "written" });
    expect(await put(store, "b", long)).toMatchObject({ kind: "written" });
    expect(await put(store, "c", long)).toMatchObject({ kind: "failed", error: { code: "STORE_FULL" } });
    expect(await put(store, "a", "short")).toMatchObject({ kind: "written" });
    expect(await read(store, "b")).toMatchObject({ cells: [bytes(long)] });
  });
});

describe("slots", () => {
  test("of processes that are gone are used again, and what stands in them stays", async () => {
    const parameters = "format&slots=2&regions=4&delay=30ms&slot-ttl=300ms";
    for (let round = 0; round < 4; round++) {
      const store = await openStore(`writer ${round}`, parameters);
      expect(await put(store, `r${round}`, `by ${round}`)).toMatchObject({ kind: "written" });
      for (let former = 0; former < round; former++) {
        expect(await read(store, `r${former}`)).toMatchObject({ cells: [bytes(`by ${former}`)] });
      }
      await store.close();
    }
  });

  test("are never shared: with all in use another process is refused", async () => {
    const parameters = "format&slots=2&regions=4&delay=60ms&slot-ttl=540ms";
    const [one, two] = [await openStore("one", parameters), await openStore("two", parameters)];
    await expect(openStore("three", parameters)).rejects.toMatchObject({ code: "STORE_FULL" });
    // On a busy machine a write takes longer than δ now and then, and its slot is not trusted until it was taken anew.
    for (const store of [one, two])
      await expect.poll(async () => (await put(store, "r", "x")).kind, { timeout: 5_000 }).toBe("written");
  });

  test("are taken by one of two that want the same at the same time", async () => {
    const parameters = "format&slots=2&regions=4&delay=30ms&slot-ttl=300ms";
    await openStore("one", parameters);
    const outcomes = await Promise.allSettled([openStore("two", parameters), openStore("three", parameters)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("a process whose slot was overwritten writes no more until it has another", async () => {
    const store = await openStore("one", "format&slots=4&regions=4&delay=50ms&slot-ttl=450ms");
    const position = (await readFile(path)).indexOf("leasehold-slot/1");
    const other = Buffer.alloc(unitBytes);
    await overwrite(path, position, other);
    const slot = () => readFile(path).then((content) => content.indexOf("leasehold-slot/1"));
    await expect.poll(slot, { timeout: 5_000 }).toBeGreaterThan(0);
    await expect.poll(async () => (await put(store, "r", "x")).kind, { timeout: 5_000 }).toBe("written");
  });
});

test("memory for direct I/O begins at a page and is as long as it should be", () => {
  const memory = alignedBytes(70_000);
  expect(memory.byteOffset).toBe(0);
  expect(memory.length).toBe(70_000);
});
