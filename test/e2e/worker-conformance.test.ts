import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, test } from "vitest";
import type * as Leasehold from "leasehold";
import type { Leases } from "leasehold";
import { runConformance } from "leasehold/testing";
import { dist } from "../support/built.js";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/**
 * Leases renewed by a worker thread pass the conformance tests of all grounds. A thread needs compiled files.
 */
describe("flease, renewed in a worker thread", () => {
  let cluster: LocalCluster;

  beforeAll(async () => {
    cluster = await startLocalCluster();
  });

  afterAll(() => cluster.close());

  runConformance({ describe, test }, async () => {
    const { open } = (await import(pathToFileURL(join(dist, "index.js")).href)) as typeof Leasehold;
    const opened: Leases[] = [];
    return {
      ttlMs: 1_000,
      open: async (name) => {
        const leases = await open(...cluster.urls, { name, renewInWorker: true });
        opened.push(leases);
        return leases;
      },
      pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      close: async () => {
        await Promise.all(opened.map((leases) => leases.close()));
      },
    };
  });
});
