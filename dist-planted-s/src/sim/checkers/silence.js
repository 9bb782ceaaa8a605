/** I15: an acceptor in its recovery wait answers nothing, and the wait is as long as it must be on both clocks. */
export class Silence {
    #view;
    #report;
    /** When the present life began, on the steady clock. */
    #began = new Map();
    constructor(view, report) {
        this.#view = view;
        this.#report = report;
    }
    started(node) {
        this.#began.set(node, node.look().mono);
    }
    handled({ node, reply }) {
        if (reply !== undefined && node.peer?.acceptor?.ready !== true)
            this.#report("I15", `${node.name} answers before it is ready`);
    }
    readied(node) {
        const waited = node.look().mono - this.#began.get(node);
        if (waited < this.#view.settings.ttlMaxMs)
            this.#report("I15", `${node.name} is ready after ${waited} ms`);
    }
}
