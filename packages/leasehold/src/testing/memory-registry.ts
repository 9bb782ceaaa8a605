import { getOrInsert } from "../common/maps.js";
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { World } from "../common/ports.js";
import type { Leases } from "../lease/types.js";
import { MemoryGround } from "./memory-ground.js";
import { MemoryProvider } from "./memory-provider.js";

/**
 * The maximum number of grounds in this process. A program with more probably doesn't close what it opens.
 */
const groundsMax = 1_000;

/**
 * Within one process the TTL matters only for a forgotten lease, so a program may ask for any TTL that its
 * real cluster would grant.
 */
const ttlMsMax = 3_600_000;

/** A ground exists from its first participant to its last. */
const grounds = new Map<string, MemoryGround>();

/**
 * Opens leases within this process. All participants that open the same name contend with each other.
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
