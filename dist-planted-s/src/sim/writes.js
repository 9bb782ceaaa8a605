import { Kind } from "../flease/message.js";
/** The book of all writes ever sent, as each was sent first. */
export class Writes {
    /** By owner, ballot number and sequence. */
    #byOwner = new Map();
    find(owner, number, sequence) {
        return this.#byOwner.get(owner)?.get(number)?.[sequence];
    }
    sent(from, _to, message) {
        if (message.kind !== Kind.write && message.kind !== Kind.acquire)
            return;
        const { owner, number, sequence, until, duration } = message;
        let byNumber = this.#byOwner.get(owner);
        if (byNumber === undefined)
            this.#byOwner.set(owner, (byNumber = new Map()));
        let writes = byNumber.get(number);
        if (writes === undefined)
            byNumber.set(number, (writes = []));
        if (writes[sequence] !== undefined)
            return;
        const end = from.look().mono + duration;
        writes[sequence] = { until, duration, end, fast: message.kind === Kind.acquire };
    }
}
