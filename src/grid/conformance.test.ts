import { describe, test } from "vitest";
import { MemoryGrid } from "../../test/support/memory-grid.js";
import { runConformance } from "../testing/conformance.js";
import { VirtualWorld } from "../testing/virtual-world.js";

/** Leases on three stores in memory, in virtual time. */
describe.each([
  ["three stores", undefined],
  ["one of them silent", "requests"],
  ["one of them takes all and says nothing", "answers"],
] as const)("the grid on three stores: %s", (_name, stalled) => {
  runConformance({ describe, test }, async () => {
    const world = new VirtualWorld();
    const grid = new MemoryGrid(world);
    // The first use needs all of the stores.
    await grid.open("founder");
    for (const medium of grid.media) medium.latencyMs = { request: 1, answer: 1 };
    if (stalled !== undefined) grid.media[1]!.stall(stalled);
    return {
      ttlMs: 1_000,
      open: (name) => grid.open(name),
      pass: (ms) => world.advance(ms),
      close: async () => {
        let closed = false;
        const closing = grid.close().finally(() => {
          closed = true;
        });
        while (!closed) await world.advance(50);
        await closing;
      },
    };
  });
});
