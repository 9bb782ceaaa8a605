import { LeaseholdError } from "../../lease/errors.js";
import { noFloor } from "../lease-protocol.js";
/**
 * A farm as what must last sees it: registers of values, ranked registers, consensus. A lease that a store has forgotten runs out, so the
 * store may count again, empty, when it has. A value or a decision does not: such a store has no part in them any more. It is seen under
 * no marker that it could answer with.
 */
export class LastingFarm {
    #farm;
    constructor(farm) {
        this.#farm = farm;
    }
    get size() {
        return this.#farm.size;
    }
    get majority() {
        return this.#farm.majority;
    }
    kindOf(store) {
        return this.#farm.kindOf(store);
    }
    nameOf(store) {
        return this.#farm.nameOf(store);
    }
    idOf(store) {
        return this.remembers(store) ? this.#farm.idOf(store) : "";
    }
    remembers(store) {
        return this.#farm.remembers(store);
    }
    floorOf() {
        return noFloor;
    }
    mayTake() {
        return true;
    }
    /** @throws LeaseholdError `STORE_FORGOTTEN` when those that remember all are no majority any more. */
    check() {
        const forgetful = Array.from({ length: this.size }, (_, store) => store).filter((store) => !this.remembers(store));
        if (this.size - forgetful.length >= this.majority)
            return;
        const names = forgetful.map((store) => this.nameOf(store)).join(" and ");
        throw new LeaseholdError("STORE_FORGOTTEN", `${names} came back empty, and ${this.majority} of ${this.size} stores that never did are needed: what registers held, and what consensus decided, cannot be known; use new stores for them`);
    }
}
