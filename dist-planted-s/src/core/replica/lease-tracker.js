import { faults } from "#core-faults";
import { Deadlines } from "../../lease/deadlines.js";
export const untracked = {
    granted() { },
    ended() { },
    refresh: () => 0,
    leftMs: () => undefined,
    takeDue: () => [],
    putBack() { },
    isWrittenShort: () => false,
    shorter: () => [],
    wroteShort() { },
};
export class LeaderTracker {
    #leases = new Map();
    #deadlines = new Deadlines();
    /**
     * A new leader does not know when leases were refreshed: each has its full remaining life again. The extra time is what
     * passed, at most, between a refresh that the last leader acknowledged and the election.
     */
    constructor(leases, nowMs, extraMs) {
        for (const lease of leases) {
            const item = this.#track(lease);
            item.writtenMs = Math.min(lease.leftMs ?? item.ttlMs, item.ttlMs);
            this.#deadlines.schedule(item, nowMs + (faults.noExtraLife ? 0 : item.writtenMs + extraMs));
        }
    }
    granted(lease, nowMs) {
        const item = this.#track(lease);
        this.#deadlines.schedule(item, nowMs + item.ttlMs);
    }
    #track({ id, ttlSeconds }) {
        const ttlMs = ttlSeconds * 1_000;
        const item = {
            id,
            ttlMs,
            isEnding: false,
            writtenMs: ttlMs,
            shortIndex: 0,
            dueMs: 0,
            heapIndex: -1,
            heapSequence: 0,
        };
        this.#leases.set(id, item);
        return item;
    }
    ended(id) {
        const item = this.#leases.get(id);
        if (item === undefined)
            return;
        this.#leases.delete(id);
        this.#deadlines.cancel(item);
    }
    refresh(id, nowMs) {
        const item = this.#leases.get(id);
        if (item === undefined || (item.isEnding && !faults.refreshAfterEndProposed))
            return 0;
        this.#deadlines.schedule(item, nowMs + item.ttlMs);
        return item.ttlMs / 1_000;
    }
    leftMs(id, nowMs) {
        const item = this.#leases.get(id);
        if (item === undefined)
            return undefined;
        return item.isEnding ? 0 : Math.max(0, item.dueMs - nowMs);
    }
    takeDue(nowMs, leasesMax) {
        const due = [];
        while (due.length < leasesMax) {
            const item = this.#deadlines.popDue(nowMs);
            if (item === undefined)
                break;
            item.isEnding = true;
            due.push(item.id);
        }
        return due;
    }
    putBack(ids, nowMs) {
        for (const id of ids) {
            const item = this.#leases.get(id);
            item.isEnding = false;
            this.#deadlines.schedule(item, nowMs);
        }
    }
    isWrittenShort(id, wholeIndex) {
        const item = this.#leases.get(id);
        if (item === undefined || item.isEnding || faults.oldTimeStays)
            return false;
        if (wholeIndex > item.shortIndex)
            item.writtenMs = item.ttlMs;
        return item.writtenMs < item.ttlMs;
    }
    shorter(nowMs, byMs, leasesMax) {
        const shorter = [];
        for (const { id, dueMs, isEnding, writtenMs } of this.#leases.values()) {
            const leftMs = Math.max(0, Math.ceil(dueMs - nowMs));
            if (isEnding || leftMs > writtenMs - byMs)
                continue;
            shorter.push({ id, leftMs });
            if (shorter.length === leasesMax)
                break;
        }
        return shorter;
    }
    wroteShort(left, index) {
        for (const { id, leftMs } of left) {
            const item = this.#leases.get(id);
            item.writtenMs = leftMs;
            item.shortIndex = index;
        }
    }
}
