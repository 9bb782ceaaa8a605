import { describe, test } from "vitest";
import { virtualGround } from "../../test/support/virtual-ground.js";
import { runConformance } from "./conformance.js";
import { MemoryProvider } from "./memory-provider.js";

describe("in memory on virtual time", () => {
  runConformance({ describe, test }, async () =>
    virtualGround(
      ({ ground, world, name, process }) =>
        new MemoryProvider(ground, world, { name, ttlMaxMs: 15_000, process }),
    ),
  );
});
