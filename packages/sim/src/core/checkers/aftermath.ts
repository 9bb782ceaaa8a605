import { create } from "@bufbuild/protobuf";
import { RangeRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { keyOf } from "@leasehold/core/inner/state/keys.js";
import { finish } from "@leasehold/core/inner/state/steps.js";
import { bytes, text } from "../world/requests.js";
import type { CoreWorld } from "../world/world.js";

const all = { key: bytes("leasehold/"), rangeEnd: bytes("leasehold0") };

/** Time for the pending request of a dead process: round trips and writes. */
const stepsOfARequest = 20;

/**
 * What a dead process leaves behind blocks nobody for longer than the core keeps it: tenures, slots of
 * readers and of counted leases, gates, places in queues.
 */
export class Aftermath {
  readonly #world: CoreWorld;
  readonly #keptMs: number;

  /** @param keptMs how long the core guarantees to keep it while the leader stays */
  constructor(world: CoreWorld, keptMs: number) {
    this.#world = world;
    const { latencyMs, slowDiskFactor, writeMs } = world.plan;
    this.#keptMs = keptMs + stepsOfARequest * (latencyMs + writeMs * slowDiskFactor);
  }

  died(holder: string): void {
    this.#world.after(this.#keptMs, () => {
      const { state } = this.#world.reference;
      for (const { key, value } of finish(state.read(create(RangeRequestSchema, all))).kvs)
        if ((JSON.parse(text(value)) as { holder: string }).holder === holder)
          this.#world.report("aftermath", `${holder} is dead, and ${keyOf(key)} still stands`);
    });
  }
}
