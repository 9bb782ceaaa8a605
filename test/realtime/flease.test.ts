import { afterAll, beforeAll, describe, test } from "vitest";
import { open } from "leasehold";
import type { Leases } from "leasehold";
import { runConformance } from "leasehold/testing";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/** Leases among peers, over real sockets and in real time. */
describe("flease", () => {
  let cluster: LocalCluster;

  beforeAll(async () => {
    cluster = await startLocalCluster();
  });

  afterAll(() => cluster.close());

  runConformance({ describe, test }, async () => {
    const opened: Leases[] = [];
    return {
      ttlMs: 1_000,
      open: async (name) => {
        const leases = await open(...cluster.urls, { name });
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
