import { Deadlines } from "../lease/deadlines.js";
/**
 * Renewals of one participant that are under way at a time. Far more than a round trip needs, and few enough that members
 * answer them long before their time is over: what a burst sends beyond that would only wait there.
 */
export const RENEWALS_UNDER_WAY_MAX = 4_096;
/** A renewal that has not begun when this part of its lease is left is late. It was wanted when two thirds were left. */
const LATE_LEFT = 1 / 2;
/**
 * Renewals that wait for their turn, the one whose lease ends first before the others: so a participant that cannot renew as
 * often as it should renews each lease less often, and not some leases too late.
 */
export class RenewalQueue {
    #waiting = new Deadlines();
    #underWay = 0;
    add(renewal, endMono, ttlMs) {
        this.#waiting.schedule(renewal, endMono - LATE_LEFT * ttlMs);
    }
    /** The next renewal that may begin now. Its end must be told by `ended`. */
    next() {
        if (this.#underWay >= RENEWALS_UNDER_WAY_MAX)
            return undefined;
        const renewal = this.#waiting.popDue(Infinity);
        if (renewal !== undefined)
            this.#underWay += 1;
        return renewal;
    }
    ended() {
        this.#underWay -= 1;
    }
    /** Takes out a renewal that has not begun. False when it has. */
    remove(renewal) {
        return this.#waiting.cancel(renewal);
    }
    get waits() {
        return this.#waiting.size > 0;
    }
    /** What is held is not renewed in time: nothing new should be begun. */
    isLate(mono) {
        return this.#waiting.nextDueMs() <= mono;
    }
}
