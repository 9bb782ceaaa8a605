import { CoreViolationError } from "../violation.js";
/**
 * No lease ends before its last acknowledged refresh, or its grant, plus its time to live: counted from before the request was
 * sent, and by the fastest of the servers' clocks.
 */
export class LeaseLife {
    #nowMs;
    #rateMax;
    #promisedMs = new Map();
    #expiredMs = new Map();
    ended = 0;
    constructor(nowMs, clockRateError) {
        this.#nowMs = nowMs;
        this.#rateMax = 1 + clockRateError;
    }
    /** A client has been told that its lease has so long from when it asked. */
    promised(id, sentMs, ttlMs) {
        const untilMs = sentMs + ttlMs / this.#rateMax;
        this.#promisedMs.set(id, Math.max(untilMs, this.#promisedMs.get(id) ?? 0));
        this.#check(id);
    }
    /** A client has been told that its lease is over. */
    denied(id) {
        const untilMs = this.#promisedMs.get(id) ?? -Infinity;
        if (this.#nowMs() < untilMs)
            throw new CoreViolationError("lease-life", `lease ${id} is said to be over before ${untilMs.toFixed(0)} ms`);
    }
    applied({ ended }, { body }) {
        this.ended += ended.length;
        if (body.case !== "leaseExpire")
            return;
        for (const id of ended) {
            this.#expiredMs.set(id, this.#nowMs());
            this.#check(id);
        }
    }
    #check(id) {
        const expiredMs = this.#expiredMs.get(id) ?? Infinity;
        const untilMs = this.#promisedMs.get(id) ?? -Infinity;
        if (expiredMs < untilMs)
            throw new CoreViolationError("lease-life", `lease ${id} ended at ${expiredMs.toFixed(0)} ms, and was promised until ${untilMs.toFixed(0)}`);
    }
}
