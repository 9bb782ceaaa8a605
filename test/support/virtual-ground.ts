import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { Provider } from "../../packages/leasehold/src/lease/provider.js";
import type { World } from "../../packages/leasehold/src/common/ports.js";
import type { Leases } from "../../packages/leasehold/src/lease/types.js";
import type { ConformanceGround } from "../../packages/leasehold/src/testing/conformance.js";
import { MemoryGround } from "../../packages/leasehold/src/testing/memory-ground.js";
import { ProcessSwitch } from "../../packages/leasehold/src/testing/process-switch.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";

export interface Parts {
  readonly ground: MemoryGround;
  readonly world: World;
  readonly name: string;
  readonly process: ProcessSwitch;
}

/**
 * A ground on virtual time, with the provider that a test makes of the parts. `wrap` may replace the leases.
 */
export function virtualGround(
  makeProvider: (parts: Parts) => Provider,
  wrap?: (leases: Leases) => Leases,
): ConformanceGround {
  const ground = new MemoryGround();
  const open = (name: string, world: World, process: ProcessSwitch) =>
    makeProvider({ ground, world, name, process });
  return groundOfProcesses(new VirtualWorld(), open, wrap);
}

/** A ground on which each participant is a separate process in one virtual world, and can be stopped. */
export function groundOfProcesses(
  world: VirtualWorld,
  open: (name: string, own: World, process: ProcessSwitch) => Provider | Promise<Provider>,
  wrap: (leases: Leases) => Leases = (leases) => leases,
): ConformanceGround {
  const opened: Leases[] = [];
  const processes = new Map<Leases, ProcessSwitch>();
  const stopped = new Set<ProcessSwitch>();
  return {
    ttlMs: 2_000,
    open: async (name) => {
      const process = new ProcessSwitch();
      const own = { clock: world.clock, random: world.random, timers: process.timers(world.timers) };
      const leases = new LeaseManager(await open(name, own, process), own);
      opened.push(leases);
      const wrapped = wrap(leases);
      processes.set(wrapped, process);
      return wrapped;
    },
    pass: (ms) => {
      // Resumed only now: a process that was stopped looks at its lease before its timers run.
      for (const process of stopped) process.resume();
      stopped.clear();
      return world.advance(ms);
    },
    freeze: async (leases, ms) => {
      processes.get(leases)!.pause();
      await world.advance(ms);
      stopped.add(processes.get(leases)!);
    },
    close: async () => {
      for (const process of processes.values()) process.resume();
      const closing = Promise.all(opened.map((leases) => leases.close()));
      await world.advance("2s");
      await closing;
    },
  };
}
