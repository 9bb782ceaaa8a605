import { execFile, execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdtemp, open, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { alignedBytes } from "../../packages/leasehold/src/stores/block/direct-file.js";
import {
  encodeSuperblock,
  sizeBytesOf,
  unitBytes,
} from "../../packages/leasehold/src/stores/block/layout.js";
import { openBlockStore } from "../../packages/leasehold/src/stores/block/open.js";
import { runStoreConformance } from "../../packages/leasehold/src/stores/conformance.js";
import { WriterProcess } from "./writer-process.js";

const run = promisify(execFile);
const layout = { slots: 16, regions: 32, delayMs: 150, slotLeaseMs: 10_000 };
const mediumBytes = sizeBytesOf(layout);

/** Empty if loop devices can be created here; otherwise the reason, as the end of a title. */
const obstacle = ((): string => {
  try {
    execFileSync("losetup", ["--find"], { stdio: "pipe" });
    return process.getuid?.() === 0 ? "" : " (skipped: only root can make one)";
  } catch (error) {
    return ` (skipped: ${String(error)})`;
  }
})();

for (const sectorBytes of [512, 4_096]) {
  const title = `a loop device with sectors of ${sectorBytes} bytes`;
  describe.skipIf(obstacle !== "")(`${title}${obstacle}`, () => {
    let directory: string;
    let device: string;

    const attach = async (): Promise<void> => {
      directory = await mkdtemp(join(tmpdir(), "leasehold-loop-"));
      await writeFile(join(directory, "disk"), "");
      await truncate(join(directory, "disk"), mediumBytes);
      const args = ["--sector-size", String(sectorBytes), "--direct-io=off", "--show", "--find"];
      device = (await run("losetup", [...args, join(directory, "disk")])).stdout.trim();
    };
    const detach = async (): Promise<void> => {
      await run("losetup", ["--detach", device]);
      await rm(directory, { recursive: true });
    };
    const layOut = async (): Promise<void> => {
      const unit = alignedBytes(unitBytes);
      const disk = await open(device, constants.O_RDWR | constants.O_DIRECT | constants.O_DSYNC);
      for (let position = 0; position < mediumBytes; position += unitBytes) {
        await disk.write(unit, 0, unitBytes, position);
      }
      unit.set(encodeSuperblock({ ...layout, id: globalThis.crypto.randomUUID() }));
      await disk.write(unit, 0, unitBytes, 0);
      await disk.close();
    };

    describe("as a store", () => {
      beforeAll(attach);
      afterAll(detach);

      runStoreConformance({ describe, test }, "slotted", async () => {
        await layOut();
        return {
          kind: "slotted",
          open: (writer) => openBlockStore(new URL(`block:${device}`), { writer }),
          forget: layOut,
          close: async () => undefined,
        };
      });
    });

    describe("by itself", () => {
      beforeEach(attach);
      afterEach(detach);

      test("is opened with its own sectors, and refuses others", async () => {
        const url = new URL(`block:${device}?format&slots=4&delay=150ms`);
        const store = await openBlockStore(url, { writer: "w" });
        expect(store.findings[0]!.seen).toBe(`sectors of ${sectorBytes} bytes`);
        await store.close();
        const disk = await open(device, constants.O_RDWR | constants.O_DIRECT);
        const outcome = await disk.read(alignedBytes(512), 0, 512, 512).catch((error: unknown) => error);
        expect(outcome).toMatchObject(sectorBytes === 512 ? { bytesRead: 512 } : { code: "EINVAL" });
        await disk.close();
      });
    });
  });
}

test("a process that is killed while it writes leaves complete units, and all confirmed writes", async () => {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-block-"));
  try {
    const path = join(directory, "disk");
    await writeFile(path, "");
    await truncate(path, sizeBytesOf({ slots: 32, regions: 4 }));
    const url = `block:${path}?format&slots=32&regions=4&delay=150ms`;
    let confirmed = 0;
    for (let round = 0; round < 12; round++) {
      const writer = new WriterProcess(url, "forever");
      await writer.hasBegun();
      await new Promise((resolve) => setTimeout(resolve, 60 * Math.random()));
      writer.signal("SIGKILL");
      await writer.ended;
      expect(writer.errors).toBe("");
      const reader = await openBlockStore(new URL(url), { writer: "reader" });
      const answer = await reader.perform({ op: "read", register: "lease/counter" });
      await reader.close();
      if (answer.kind !== "cells") throw new Error(`a read was answered with ${JSON.stringify(answer)}`);
      const texts = answer.cells.map((cell) => new TextDecoder().decode(cell));
      for (const text of texts) expect(text).toMatch(/^\d+ \d+ \d+ x{300}$/);
      const found = Math.max(...texts.map((text) => Number(text.split(" ")[0])));
      expect(writer.confirmed[0]).toBe(confirmed + 1);
      confirmed = writer.confirmed.at(-1)!;
      expect([confirmed, confirmed + 1]).toContain(found);
      confirmed = found;
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
