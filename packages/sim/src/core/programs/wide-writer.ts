import type { ClientRequest } from "@leasehold/core/inner/replica/types.js";
import type { SimRandom } from "../../kit/random.js";
import { bytes, removeAll, txn } from "../world/requests.js";
import type { CoreWorld } from "../world/world.js";

/** The prefix of its keys. */
export const widePrefix = "w/";
const rangeEnd = bytes("w0");

const keys = 12;
const valueBytesMax = 120;
const restMeanMs = 300;

/** Writes and deletes a few keys at a time: its revisions fill several responses of a watch. */
export class WideWriter {
  readonly #world: CoreWorld;
  readonly #random: SimRandom;

  constructor(world: CoreWorld, random: SimRandom) {
    this.#world = world;
    this.#random = random;
  }

  begin(): void {
    if (this.#world.nowMs > this.#world.plan.stableFromMs) return;
    this.#world.after(this.#random.exponential(restMeanMs), () => {
      this.#world.call(this.#random.pick(this.#world.servers), this.#choose(), () => this.begin());
    });
  }

  #choose(): ClientRequest {
    if (this.#random.chance(0.3)) {
      const from = `${widePrefix}${this.#random.below(keys)}`;
      return removeAll(from, this.#random.chance(0.5) ? rangeEnd : bytes(`${from}~`));
    }
    const first = this.#random.below(keys);
    const success = Array.from({ length: this.#random.pick([1, 2, keys]) }, (_, index) => {
      const value = bytes("x".repeat(this.#random.below(valueBytesMax)));
      const key = bytes(`${widePrefix}${(first + index) % keys}`);
      return { request: { case: "requestPut" as const, value: { key, value } } };
    });
    return txn({ success });
  }
}
