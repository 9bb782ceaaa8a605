import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { open } from "leasehold";
import type { Leases } from "leasehold";
import { runConformance } from "leasehold/testing";

/**
 * Flease on three directories, opened as programs open it, in real time. The cases mostly sleep, so they run
 * concurrently.
 */
describe("flease+file", () => {
  runConformance({ describe, test: test.concurrent }, async () => {
    const root = mkdtempSync(join(tmpdir(), "leasehold-grid-"));
    const folders = ["a", "b", "c"].map((name) => join(root, name));
    for (const folder of folders) mkdirSync(folder);
    const url = `flease+file://${folders.join(",")}?ttlMax=10s&maxClockSkew=50ms&maxStoreLatency=1s`;
    const opened: Leases[] = [];
    return {
      ttlMs: 5_000,
      open: async (name) => {
        const leases = await open(url, { name });
        opened.push(leases);
        return leases;
      },
      pass: (ms) =>
        new Promise((resolve) => {
          setTimeout(resolve, ms);
        }),
      close: async () => {
        await Promise.all(opened.map((leases) => leases.close()));
        rmSync(root, { recursive: true, force: true });
      },
    };
  });
});
