import { LeaseholdError } from "../../lease/errors.js";
import { type FarmView, type Floor, noFloor } from "../lease-protocol.js";
import type { StoreTraits } from "../store.js";

/**
 * A farm for data that does not expire: registers of values, ranked registers, consensus. A store that has
 * forgotten leases may count again, empty, when they have expired. Values and decisions do not expire, so
 * that store never counts for them again: here its marker is empty, which matches no answer.
 */
export class LastingFarm implements FarmView {
  readonly #farm: FarmView;

  constructor(farm: FarmView) {
    this.#farm = farm;
  }

  get size(): number {
    return this.#farm.size;
  }

  get majority(): number {
    return this.#farm.majority;
  }

  kindOf(store: number): StoreTraits["kind"] {
    return this.#farm.kindOf(store);
  }

  nameOf(store: number): string {
    return this.#farm.nameOf(store);
  }

  idOf(store: number): string {
    return this.remembers(store) ? this.#farm.idOf(store) : "";
  }

  remembers(store: number): boolean {
    return this.#farm.remembers(store);
  }

  floorOf(): Floor {
    return noFloor;
  }

  mayTake(): boolean {
    return true;
  }

  /** @throws LeaseholdError `STORE_FORGOTTEN` when the stores that never forgot are no longer a majority. */
  check(): void {
    const forgetful = Array.from({ length: this.size }, (_, store) => store).filter(
      (store) => !this.remembers(store),
    );
    if (this.size - forgetful.length >= this.majority) return;
    const names = forgetful.map((store) => this.nameOf(store)).join(" and ");
    throw new LeaseholdError(
      "STORE_FORGOTTEN",
      `${names} came back empty, and ${this.majority} of ${this.size} stores that never did are needed: register values and consensus decisions are unknown; use new stores for them`,
    );
  }
}
