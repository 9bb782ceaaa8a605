import { describe, test } from "vitest";
import { MemoryFarm, virtualFarmGround } from "../../test/support/memory-farm.js";
import { LeaseManager } from "../lease/lease-manager.js";
import type { World } from "../lease/ports.js";
import { runConformance } from "../testing/conformance.js";

const realWorld: World = {
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  timers: {
    after: (delayMs, run) => {
      const timeout = setTimeout(run, Math.ceil(delayMs) + 1);
      return { cancel: () => clearTimeout(timeout) };
    },
  },
  random: { next: Math.random },
};

describe("conditional leases on virtual time", () => {
  runConformance({ describe, test }, async () => virtualFarmGround());
});

describe("conditional leases where one of three stores is silent", () => {
  for (const at of ["requests", "answers"] as const)
    describe(`before it has done with its ${at}`, () => {
      runConformance({ describe, test }, async () =>
        virtualFarmGround({ delayMs: 50, afflict: ([first]) => first!.stall(at) }),
      );
    });
});

describe("conditional leases on stores that take their time", () => {
  runConformance({ describe, test }, async () =>
    virtualFarmGround({
      afflict: (media) =>
        media.forEach((medium, store) => {
          medium.latencyMs = { request: 1 + store, answer: 3 - store };
        }),
    }),
  );
});

// Each case spends its time asleep, so they may run side by side.
describe("conditional leases on real time", () => {
  runConformance({ describe, test: test.concurrent }, async () => {
    const farm = new MemoryFarm(realWorld);
    const opened: LeaseManager[] = [];
    return {
      ttlMs: 500,
      open: async (name) => {
        const provider = await farm.open(name, realWorld, { leaseMsMax: 1_000 });
        const leases = new LeaseManager(provider, realWorld);
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
