import { afterAll, beforeAll, describe, test } from "vitest";
import { open } from "leasehold";
import type { Leases } from "leasehold";
import { runConformance } from "leasehold/testing";
import { CoreCluster, type Program } from "./support/core-cluster.js";

/**
 * Leases of a core as programs open them. Each case spends its time sleeping, so the cases run concurrently
 * on one cluster.
 */
for (const [program, servers] of [
  ["etcd", 1],
  ["etcd", 3],
  ["leasehold", 1],
  ["leasehold", 3],
] as const satisfies [Program, number][]) {
  describe(`core:// on ${program}, servers: ${servers}`, () => {
    let cluster: CoreCluster;
    beforeAll(async () => {
      cluster = await CoreCluster.start(servers, { program });
    });
    afterAll(() => cluster[Symbol.asyncDispose]());

    runConformance({ describe, test: test.concurrent }, async () => {
      const opened: Leases[] = [];
      return {
        ttlMs: 2_000,
        open: async (name) => {
          const leases = await open(`core://${cluster.endpoints}?ttlMax=4s`, { name });
          opened.push(leases);
          return leases;
        },
        pass: (ms) =>
          new Promise((resolve) => {
            setTimeout(resolve, ms);
          }),
        close: async () => {
          await Promise.all(opened.map((leases) => leases.close()));
        },
      };
    });
  });
}
