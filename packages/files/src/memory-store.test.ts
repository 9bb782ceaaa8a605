import { expect, test } from "vitest";
import { MemoryBlockStore } from "./memory-store.js";

const bytes = (text: string) => new TextEncoder().encode(text);

async function storeWith(tag: string): Promise<MemoryBlockStore> {
  const store = new MemoryBlockStore();
  await store.writeMeta("a", "meta");
  await store.writeBlock("a", 0, tag, bytes(tag));
  return store;
}

test("a crash loses or keeps unsynced changes, and never loses synced ones", async () => {
  const store = await storeWith("1");
  await store.sync("a");
  await store.writeBlock("a", 0, "2", bytes("2"));
  await store.writeBlock("a", 1, "3", bytes("3"));
  store.crash(() => true);
  expect(await store.listBlocks("a")).toEqual([{ index: 0, tag: "1" }]);
  await store.writeBlock("a", 0, "2", bytes("2"));
  store.crash(() => false);
  expect(await store.readBlock("a", 0)).toEqual({ tag: "2", bytes: bytes("2") });
});

test("a damaged block is listed and not read, until it is written again", async () => {
  const store = await storeWith("1");
  store.rot("a", 0);
  await expect(store.readBlock("a", 0)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  expect(await store.listBlocks("a")).toEqual([{ index: 0, tag: "1" }]);
  await store.writeBlock("a", 0, "1", bytes("1"));
  expect((await store.readBlock("a", 0))?.tag).toBe("1");
});
