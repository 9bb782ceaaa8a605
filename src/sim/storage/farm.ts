import { faults } from "#delta-faults";
import { LeaseholdError } from "../../lease/errors.js";
import type { FarmView } from "../../delta/lease-protocol.js";
import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import type { SimStore } from "./store.js";

/** Greater than any epoch and number that a store may have known before it forgot for this many times. */
const floorStep = 1n << 64n;

/** The farm as one process knows it: a store that has forgotten does not count until all that it may have known is over. */
export class SimFarm implements FarmView {
  readonly size: number;
  readonly majority: number;
  readonly #stores: readonly SimStore[];
  readonly #known: { id: string; generation: number; recoveredAtMono: number }[];
  readonly #recoveryMs: number;

  /** `monoMs`: now. `forgotAgoMs`: how long ago a store forgot, at most, on any clock. */
  constructor(
    stores: readonly SimStore[],
    recoveryMs: number,
    monoMs: number,
    forgotAgoMs: (store: number) => number,
  ) {
    this.size = stores.length;
    this.majority = Math.floor(stores.length / 2) + 1;
    this.#stores = stores;
    this.#recoveryMs = recoveryMs;
    this.#known = stores.map(({ id, generation }, store) => ({
      id,
      generation,
      recoveredAtMono:
        forgotAgoMs(store) < recoveryMs && !faults.forgottenStoreCounts ? monoMs + recoveryMs : 0,
    }));
  }

  idOf(store: number): string {
    return this.#known[store]!.id;
  }

  kindOf(store: number): StoreTraits["kind"] {
    return this.#stores[store]!.kind;
  }

  nameOf(store: number): string {
    return `store ${store}`;
  }

  floorOf(store: number): bigint {
    return BigInt(this.#known[store]!.generation) * floorStep;
  }

  /** What an answer counts as. */
  admit(store: number, answer: StoreAnswer, monoMs: number): StoreAnswer {
    if (answer.kind === "failed") return answer;
    const known = this.#known[store]!;
    const { id } = answer;
    if (id !== known.id) {
      known.id = id;
      known.generation = this.#stores[store]!.generation;
      known.recoveredAtMono = monoMs + this.#recoveryMs;
      if (!faults.forgottenStoreCounts) return recovering;
    }
    return monoMs < known.recoveredAtMono && !faults.forgottenStoreCounts ? recovering : answer;
  }
}

const recovering: StoreAnswer = {
  kind: "failed",
  error: new LeaseholdError("STORE_UNAVAILABLE", "it has forgotten, and is recovering"),
};
