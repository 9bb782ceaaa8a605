import { Kind } from "../../flease/message.js";
/** I10: no acceptor takes a lease that is longer than the longest, or that ends later than one granted now could. */
export class BoundedLeases {
    #view;
    #report;
    constructor(view, report) {
        this.#view = view;
        this.#report = report;
    }
    handled({ node, request, reply }) {
        if (reply?.kind !== Kind.ack)
            return;
        const { ttlMaxMs, maxClockSkewMs } = this.#view.settings;
        const { until, duration, resource } = request;
        const { wall } = node.look();
        if (duration > ttlMaxMs || until > wall + maxClockSkewMs + ttlMaxMs)
            this.#report("I10", `${node.name} takes a lease of ${resource} for ${duration} ms, until ${until}`);
    }
}
