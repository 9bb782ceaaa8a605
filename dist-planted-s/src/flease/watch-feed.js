import { faults } from "#faults";
import { Deadlines } from "../lease/deadlines.js";
import { ChangeLog } from "./change-log.js";
import { looksPerStep } from "./fair-work.js";
import { listedLease, listedMax, Scan } from "./listing.js";
/** The earliest that a lease which seemed to be over is looked at again. */
const lookAgainMs = 10;
/** Ends that one call of `expire` looks at: some milliseconds. At ten calls a second, more than a member can renew. */
const endsPerCall = 10_000;
/** With 65,536 changes: some ten megabytes. */
const feedBounds = { pageMax: listedMax, looksPerStep, changesMax: 65_536 };
/** A lease as the followers were last told of it. */
class Followed {
    resource;
    owner = "";
    token = 0;
    dueMs = 0;
    heapIndex = -1;
    heapSequence = 0;
    constructor(resource) {
        this.resource = resource;
    }
}
/** One who follows the changes below a prefix: its places in what is held, and in what has changed. */
export class Follower {
    prefix;
    /** Where it goes on reading what has changed. */
    place = 0;
    /** Where it goes on reading what is held; `undefined` when it knows that. */
    scan;
    /** It has been told nothing, or missed something. */
    beginsAnew = true;
    constructor(prefix) {
        this.prefix = prefix;
    }
}
/**
 * What happens to the leases of one acceptor, for those who watch. It is beside the protocol: it looks at entries and
 * changes none. While nobody follows it costs one comparison for each request; else the same for one follower as for a
 * thousand.
 *
 * A lease is looked after from when a follower may have been told of it. What no scan has met yet, no follower knows.
 */
export class WatchFeed {
    #acceptor;
    #followers = new Set();
    #followed = new Map();
    #deadlines = new Deadlines();
    #bounds;
    #log;
    constructor(acceptor, bounds = feedBounds) {
        this.#acceptor = acceptor;
        this.#bounds = bounds;
        this.#log = new ChangeLog(bounds.changesMax);
    }
    get isFollowed() {
        return this.#followers.size > 0;
    }
    /** Whoever begins to follow is first told of everything that is held. */
    follow(prefix) {
        const follower = new Follower(prefix);
        this.#followers.add(follower);
        return follower;
    }
    unfollow(follower) {
        this.#followers.delete(follower);
        if (this.isFollowed)
            return;
        this.#followed = new Map();
        this.#deadlines = new Deadlines();
        this.#log = new ChangeLog(this.#bounds.changesMax);
    }
    /** There may be something to tell. */
    hasNews(follower) {
        return follower.beginsAnew || follower.scan !== undefined || follower.place < this.#log.end;
    }
    /** Something was done to this resource. Renewals are no change. */
    note(resource, now) {
        if (!this.isFollowed)
            return;
        const entry = this.#acceptor.entry(resource);
        let followed = this.#followed.get(resource);
        if (entry === undefined || this.#acceptor.isOver(entry, now)) {
            if (followed === undefined)
                return;
            this.#deadlines.cancel(followed);
            this.#followed.delete(resource);
            this.#log.add(resource);
            return;
        }
        if (followed?.owner === entry.leaseOwner && followed.token === entry.token)
            return;
        followed ??= this.#lookAfter(resource, entry.leaseEnd);
        followed.owner = entry.leaseOwner;
        followed.token = entry.token;
        this.#log.add(resource);
    }
    #lookAfter(resource, endMs) {
        const followed = new Followed(resource);
        this.#followed.set(resource, followed);
        this.#deadlines.schedule(followed, endMs);
        return followed;
    }
    /** To be called several times a second: a lease that runs out makes no sound. */
    expire(now) {
        for (let looked = 0; looked < endsPerCall; looked += 1) {
            const followed = this.#deadlines.popDue(now.mono);
            if (followed === undefined)
                return;
            const entry = this.#acceptor.entry(followed.resource);
            if (entry === undefined || this.#acceptor.isOver(entry, now))
                this.note(followed.resource, now);
            else
                this.#deadlines.schedule(followed, Math.max(entry.leaseEnd, now.mono + lookAgainMs));
        }
    }
    /** What a follower has not been told yet, or the first part of it. */
    *take(follower, now) {
        const { pageMax, looksPerStep: looks } = this.#bounds;
        // Between two steps a resource may change once more: a page tells the last that it has seen of each.
        const told = new Map();
        // What has changed comes first: so a follower keeps up with it during a long scan.
        const anew = follower.beginsAnew || this.#hasMissed(follower);
        if (anew) {
            follower.beginsAnew = false;
            follower.place = this.#log.end;
            follower.scan = new Scan(this.#acceptor, follower.prefix, looks);
        }
        yield* this.#readChanges(follower, told);
        if (follower.scan !== undefined && told.size < pageMax) {
            yield* follower.scan.go(now, (resource, entry) => {
                if (!this.#followers.has(follower))
                    return false; // It has gone between two steps.
                const followed = this.#followed.get(resource) ?? this.#lookAfter(resource, entry.leaseEnd);
                followed.owner = entry.leaseOwner;
                followed.token = entry.token;
                return told.set(resource, listedLease(resource, entry)).size < pageMax;
            });
            if (follower.scan.isOver)
                follower.scan = undefined;
        }
        const more = told.size >= pageMax || follower.scan !== undefined || this.#hasMissed(follower);
        const held = [...told.values()].filter((lease) => lease !== undefined);
        const free = [...told.keys()].filter((resource) => told.get(resource) === undefined);
        return { held, free, more, anew };
    }
    /** What it has not read yet is not kept any more. */
    #hasMissed(follower) {
        return follower.place < this.#log.begin && !faults.missedChangesAreForgotten;
    }
    *#readChanges(follower, told) {
        const { pageMax } = this.#bounds;
        let looked = 0;
        follower.place = Math.max(follower.place, this.#log.begin);
        while (follower.place < this.#log.end && told.size < pageMax) {
            if (looked === this.#bounds.looksPerStep) {
                yield;
                looked = 0;
                if (this.#hasMissed(follower))
                    return; // The next page begins anew.
            }
            looked += 1;
            const resource = this.#log.at(follower.place);
            follower.place += 1;
            if (resource === undefined || !resource.startsWith(follower.prefix))
                continue;
            const entry = this.#acceptor.entry(resource);
            const isHeld = entry !== undefined && this.#followed.has(resource);
            told.set(resource, isHeld ? listedLease(resource, entry) : undefined);
        }
    }
}
