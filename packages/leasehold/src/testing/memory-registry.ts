import { getOrInsert } from "../common/maps.js";
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { World } from "../common/ports.js";
import type { Leases } from "../lease/types.js";
import { MemoryGround } from "./memory-ground.js";
import { MemoryProvider } from "./memory-provider.js";

/** Grounds of this process by name. More would mean that a program does not close what it opens. */
const groundsMax = 1_000;

/**
 * Within one process only a forgotten lease needs its TTL, so a program may ask for any TTL that its real
 * cluster would grant.
 */
const ttlMsMax = 3_600_000;

/** A ground lives from its first participant to its last. */
const grounds = new Map<string, MemoryGround>();

/**
 * Leases within this process: all that open the same name contend with each other.
 *
 * @throws LeaseholdError `INVALID_CONFIG` when too many names are open.
 */
export function openMemory(name: string, world: World, participant = "memory"): Leases {
  if (grounds.size >= groundsMax && !grounds.has(name)) {
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${groundsMax} in-memory clusters are open in this process; close some`,
    );
  }
  const ground = getOrInsert(grounds, name, () => new MemoryGround(() => grounds.delete(name)));
  return new LeaseManager(
    new MemoryProvider(ground, world, { name: participant, ttlMaxMs: ttlMsMax }),
    world,
  );
}
