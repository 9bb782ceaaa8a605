import { describe, test } from "vitest";
import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { World } from "../../packages/leasehold/src/common/ports.js";
import { type ConformanceGround, runConformance } from "../../packages/leasehold/src/testing/conformance.js";
import { MemoryGround } from "../../packages/leasehold/src/testing/memory-ground.js";
import { MemoryProvider } from "../../packages/leasehold/src/testing/memory-provider.js";

const realWorld: World = {
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  timers: {
    after: (delayMs, run) => {
      const timeout = setTimeout(run, Math.max(0, Math.ceil(delayMs)) + 1);
      return { cancel: () => clearTimeout(timeout) };
    },
  },
  random: { next: Math.random },
};

function realGround(): ConformanceGround {
  const ground = new MemoryGround();
  const opened: LeaseManager[] = [];
  return {
    ttlMs: 500,
    open: async (name) => {
      const leases = new LeaseManager(
        new MemoryProvider(ground, realWorld, { name, ttlMaxMs: 1_000 }),
        realWorld,
      );
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
}

// The cases mostly sleep, so they run concurrently.
describe("in memory on real time", () => {
  runConformance({ describe, test: test.concurrent }, async () => realGround());
});
