import { clocksDisagree } from "../lease/clock-rates.js";
/** One uninterrupted holding, in the hands of its holder. An algorithm may extend it with what it has to remember. */
export class Tenure {
    resource;
    /** The fencing token. */
    token;
    /** Moved by each renewal. */
    hold;
    /** Set once, by whoever notices first; nothing re-opens the tenure. */
    lost;
    /** Somebody wants the resource. */
    asked;
    constructor(resource, token, hold) {
        this.resource = resource;
        this.token = token;
        this.hold = hold;
    }
    /** It was broken, and is not renewed any more. */
    get isBroken() {
        return this.asked?.broken === true;
    }
    /**
     * Milliseconds that are left. Each of the two clocks can end it, and so does their disagreement: the steady one stands still
     * while the machine sleeps, and the system's may be wrong when it wakes. Once 0, always 0.
     */
    remainingMs(now) {
        if (this.lost !== undefined)
            return 0;
        const { begun, leaseMs } = this.hold;
        const disagree = clocksDisagree(begun, now, leaseMs);
        const leftMs = disagree ? 0 : leaseMs - elapsedMs(begun, now);
        if (leftMs > 0)
            return leftMs;
        this.lost = disagree ? "clock-fault" : this.isBroken ? "broken" : "expired";
        return 0;
    }
}
/** Milliseconds from one reading to another, by the clock that went further. */
export function elapsedMs(from, to) {
    return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}
