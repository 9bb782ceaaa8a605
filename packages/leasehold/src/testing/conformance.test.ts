import { describe, expect, test } from "vitest";
import { virtualGround } from "../../../../test/support/virtual-ground.js";
import type { Leases } from "../lease/types.js";
import { conformanceCases, runConformance } from "./conformance.js";
import { MemoryProvider } from "./memory-provider.js";

describe("in memory on virtual time", () => {
  runConformance({ describe, test }, async () =>
    virtualGround(
      ({ ground, world, name, process }) =>
        new MemoryProvider(ground, world, { name, ttlMaxMs: 15_000, process }),
    ),
  );
});

test("a holder whose process stands still until its lease is another's does not count as a second one", async () => {
  const ground = virtualGround(
    ({ ground: memory, world, name, process }) =>
      new MemoryProvider(memory, world, { name, ttlMaxMs: 15_000, process }),
  );
  const opened: Leases[] = [];
  let isFrozen = false;
  const starving = {
    ...ground,
    open: async (name: string) => {
      const leases = await ground.open(name);
      opened.push(leases);
      return leases;
    },
    // The first tenure takes longer than its lease lasts.
    pass: async (ms: number) => {
      if (isFrozen || ms !== ground.ttlMs / 20) return ground.pass(ms);
      isFrozen = true;
      await ground.freeze!(opened[0]!, 5 * ground.ttlMs);
    },
  };
  const exclusion = conformanceCases().find(({ name }) => name.startsWith("at most one participant"));
  await exclusion!.run(starving);
  expect(isFrozen).toBe(true);
  await ground.close();
});
