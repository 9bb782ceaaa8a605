/** I1 for elections: the work of a leader has ended before the same campaign leads again. */
export class Leaders {
    #report;
    #working = new Map();
    constructor(report) {
        this.#report = report;
    }
    leads(campaign, claim, begins) {
        const working = this.#working.get(campaign);
        if (!begins)
            this.#working.delete(campaign);
        else if (working === undefined)
            this.#working.set(campaign, claim);
        else
            this.#report("I1", `${claim.node.name} leads ${claim.resource} anew while it works by ${working.token}`);
    }
}
