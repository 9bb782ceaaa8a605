import { describe, test } from "vitest";
import { MemoryGrid } from "../../../test/support/memory-grid.js";
import type { Leases } from "../../lease/types.js";
import { runConformance } from "../../testing/conformance.js";
import { ProcessSwitch } from "../../testing/process-switch.js";
import { VirtualWorld } from "../../testing/virtual-world.js";

/** Leases on three stores in memory, in virtual time. */
describe.each([
  ["three stores", undefined],
  ["one of them silent", "requests"],
  ["one of them takes all and says nothing", "answers"],
] as const)("the grid on three stores: %s", (_name, stalled) => {
  runConformance({ describe, test }, async () => {
    const world = new VirtualWorld();
    const grid = new MemoryGrid(world);
    const switches = new Map<Leases, ProcessSwitch>();
    // The first use needs all of the stores.
    await grid.open("founder");
    for (const medium of grid.media) medium.latencyMs = { request: 1, answer: 1 };
    if (stalled !== undefined) grid.media[1]!.stall(stalled);
    return {
      ttlMs: 1_000,
      open: async (name) => {
        const own = new ProcessSwitch();
        const { clock, random } = world;
        const leases = await grid.open(name, {}, { clock, random, timers: own.timers(world.timers) });
        switches.set(leases, own);
        return leases;
      },
      pass: (ms) => world.advance(ms),
      freeze: async (leases, ms) => {
        switches.get(leases)!.pause();
        await world.advance(ms);
        switches.get(leases)!.resume();
      },
      close: async () => {
        const closing = grid.close();
        await world.advance("2s");
        await closing;
      },
    };
  });
});
