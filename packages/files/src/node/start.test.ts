import { settingOf } from "leasehold/inner/cli/settings/table.js";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { expect, test } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import { MemoryBlockStore } from "../memory-store.js";
import { startFiles } from "./start.js";

const sizes = settingOf("files.blockSize").kind as { readonly min: number; readonly max: number };

async function blockSizeAt(blockSize: number): Promise<number> {
  const [port] = await freePorts(1);
  const leases = new MemoryCluster();
  const nodes = { a: `127.0.0.1:${port}` };
  const store = new MemoryBlockStore();
  try {
    await using files = await startFiles({ node: "a", nodes, leases: leases.open("a"), store, blockSize });
    await using file = await files.open("a", { create: "missing" });
    return file.blockSize;
  } finally {
    await leases.close();
  }
}

test("a node takes the block sizes that --block-size takes", async () => {
  expect(sizes).toMatchObject({ min: 512, max: 4 * 2 ** 20 });
  expect([await blockSizeAt(sizes.min), await blockSizeAt(sizes.max)]).toEqual([sizes.min, sizes.max]);
});

test.each([sizes.min - 1, sizes.max + 1, 1, 512.5])("a block size of %d is refused", async (size) => {
  await expect(blockSizeAt(size)).rejects.toThrow("blockSize is 512 to 4194304 bytes");
});
