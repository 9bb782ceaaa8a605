/** I2, as programs see it: each is given a greater token than everybody before it. */
export class ProgramTokens {
    #report;
    #greatest = new Map();
    constructor(report) {
        this.#report = report;
    }
    claimBegan({ node, resource, token }) {
        const greatest = this.#greatest.get(resource) ?? 0;
        if (token <= greatest)
            this.#report("I2", `a program of ${node.name} gets token ${token} of ${resource} after ${greatest}`);
        this.#greatest.set(resource, Math.max(greatest, token));
    }
}
