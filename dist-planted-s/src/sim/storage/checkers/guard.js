/**
 * What is fenced is never harmed, whatever the delays: once it has taken the write of another tenure, it takes none of an
 * earlier one any more, also while two believe that they hold.
 */
export class Guard {
    #report;
    #writing;
    #past = new Set();
    constructor(report) {
        this.#report = report;
    }
    guarded(claim) {
        if (claim.shared)
            return;
        if (this.#past.has(claim))
            this.#report("guard", `${claim.party.writer} writes after its successor`);
        if (this.#writing !== undefined && this.#writing !== claim)
            this.#past.add(this.#writing);
        this.#writing = claim;
    }
}
