import { stretched } from "../../../lease/clock-rates.js";
/** Losing a claim to another costs a wait; so many in a row, without anybody winning, are too many. */
const waitsMax = 4;
/**
 * Progress: where delays are bounded and somebody wants the resource, somebody gets it (Property 2, Lemma 3; Property 5
 * once they have become so): a crashed holder is replaced after its wait, and contenders do not block each other for ever.
 */
export class Progress {
    #view;
    #report;
    #wanting = new Set();
    #sinceMs = Infinity;
    constructor(view, report) {
        this.#view = view;
        this.#report = report;
    }
    wants(party, wants) {
        if (wants)
            this.#wanting.add(party);
        else
            this.#wanting.delete(party);
    }
    began() {
        this.#sinceMs = Infinity;
    }
    disturbed(party) {
        if (party?.isAlive === false)
            this.#wanting.delete(party);
        this.#sinceMs = Infinity;
    }
    looked() {
        const { nowMs, settledMs, claims, waitMs, plan } = this.#view;
        const isHeld = [...claims].some((claim) => claim.remainingMs() > 0);
        if (nowMs < settledMs || this.#wanting.size === 0 || isHeld)
            this.#sinceMs = Infinity;
        else if (this.#sinceMs === Infinity)
            this.#sinceMs = nowMs;
        else if (nowMs - this.#sinceMs > stretched(waitsMax * waitMs, plan.clockRateError))
            this.#report("progress", `nobody has got it for ${Math.round(nowMs - this.#sinceMs)} ms`);
    }
}
