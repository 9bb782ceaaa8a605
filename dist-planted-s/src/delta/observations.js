import { stretched } from "../lease/clock-rates.js";
/**
 * Resources that are kept in mind, some 30 megabytes. Forgetting one is safe: whoever waits for its end has to wait for it
 * anew.
 */
export const observedMax = 100_000;
/**
 * Since when each store's cell has been what it is, by this process's own steady clock. No clock is ever compared with
 * another's: a lease of Δ is over when its record has been seen unchanged for Δ.
 */
export class Observations {
    #clockRateError;
    /** By resource, then by the index of the store. The resource that was looked at last comes last. */
    #seen = new Map();
    constructor(clockRateError) {
        this.#clockRateError = clockRateError;
    }
    /** `nowMs` is a reading after the answer had come. */
    see(resource, store, record, nowMs) {
        const seen = this.#seen.get(resource) ?? [];
        const last = seen[store];
        if (last === undefined || last.writer !== record.writer || last.nonce !== record.nonce) {
            seen[store] = { writer: record.writer, nonce: record.nonce, sinceMs: nowMs };
        }
        this.#seen.delete(resource);
        this.#seen.set(resource, seen);
        if (this.#seen.size > observedMax)
            this.forget(this.#seen.keys().next().value);
    }
    forget(resource) {
        this.#seen.delete(resource);
    }
    /** How long until the record's lease is certainly over if it stays what it is, ms; 0 when it is. */
    untilOverMs(resource, store, record, nowMs) {
        const last = this.#seen.get(resource)?.[store];
        const isSame = last !== undefined && last.writer === record.writer && last.nonce === record.nonce;
        const unchangedMs = isSame ? nowMs - last.sinceMs : 0;
        return Math.max(0, stretched(record.leaseMs, this.#clockRateError) - unchangedMs);
    }
}
