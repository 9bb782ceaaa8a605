/** Uniform agreement and validity (Fig. 8, Lemma 11): all that ever decide decide the same, and somebody had proposed it. */
export class Agreement {
    #report;
    #proposed = new Set();
    #value;
    constructor(report) {
        this.#report = report;
    }
    proposed(value) {
        this.#proposed.add(value);
    }
    decided(party, value) {
        if (!this.#proposed.has(value))
            this.#report("agreement", `nobody proposed ${value}`);
        this.#value ??= value;
        if (value !== this.#value)
            this.#report("agreement", `${party.writer} decides ${value} after ${this.#value}`);
    }
}
