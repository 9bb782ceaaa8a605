import { Deadlines } from "../lease/deadlines.js";
import { Cells } from "./cells.js";
import { Kind, LeaseState, Message } from "./message.js";
import { sizeOf } from "./quorum.js";
class Query {
    answers = 0;
    /** By those that know of a lease at all. */
    told = [];
    dueMs = 0;
    heapIndex = -1;
    heapSequence = 0;
    handle;
    cell;
    done;
    constructor(handle, cell, done) {
        this.handle = handle;
        this.cell = cell;
        this.done = done;
    }
    get answered() {
        return sizeOf(this.answers) >= this.cell.majority;
    }
    /** How many told of exactly this. */
    votesFor(lease) {
        return this.told.filter((one) => isSameBallot(one, lease) && one.sequence === lease.sequence && one.state === lease.state).length;
    }
    /**
     * The unfinished lease with the highest ballot; `undefined` when there is none. A finished one with a higher ballot
     * may be an attempt that a minority accepted and that was withdrawn, so it hides nothing but what its own ballot had.
     */
    holding() {
        return this.told
            .filter((lease) => lease.state === LeaseState.live && !this.#isEnded(lease))
            .reduce((one, other) => (one && !isHigher(other, one) ? one : other), undefined);
    }
    #isEnded(lease) {
        return this.told.some((one) => one.state !== LeaseState.live && isSameBallot(one, lease) && isHigher(one, lease));
    }
}
const nothing = { state: LeaseState.none, owner: "", number: 0, sequence: 0, until: 0, token: 0 };
function isHigher(one, other) {
    return one.number > other.number || (one.number === other.number && one.sequence > other.sequence);
}
function isSameBallot(one, other) {
    return one.number === other.number && one.owner === other.owner;
}
/**
 * Asking who holds a resource (3.9): all acceptors of its cell are asked, and of a majority's answers an unfinished
 * lease counts before a finished one, and then the highest ballot. It changes nothing and writes nothing back (repair
 * F8), and nothing is ever based on it.
 */
export class Queries {
    #settings;
    #cells;
    #send;
    #open = new Map();
    #deadlines = new Deadlines();
    #out = new Message();
    #lastHandle = 0;
    constructor(settings, send) {
        this.#settings = settings;
        this.#send = send;
        this.#cells = new Cells(settings.members, settings.cellSize);
    }
    get nextDueMono() {
        return this.#deadlines.nextDueMs();
    }
    ask(resource, owner, timeoutMs, now, done) {
        const handle = (this.#lastHandle = (this.#lastHandle % 0xffff_ffff) + 1);
        const query = new Query(handle, this.#cells.of(resource), done);
        this.#open.set(handle, query);
        this.#deadlines.schedule(query, now.mono + timeoutMs);
        const out = this.#out;
        out.kind = Kind.query;
        out.view = this.#settings.view;
        out.slot = handle;
        out.resource = resource;
        out.owner = owner;
        out.number = 0;
        out.sequence = 0;
        for (const member of query.cell.members)
            this.#send(member, out);
    }
    receive(from, reply, now) {
        const query = this.#open.get(reply.slot);
        const position = query?.cell.members.indexOf(from) ?? -1;
        if (query === undefined || position === -1)
            return;
        const bit = 1 << position;
        if ((query.answers & bit) !== 0)
            return;
        query.answers |= bit;
        if (reply.leaseState !== LeaseState.none) {
            query.told.push({
                state: reply.leaseState,
                owner: reply.leaseOwner,
                number: reply.leaseNumber,
                sequence: reply.leaseSequence,
                until: reply.leaseUntil,
                token: reply.leaseToken,
            });
        }
        if (query.answered)
            this.#close(query, now);
    }
    tick(now) {
        for (;;) {
            const query = this.#deadlines.popDue(now.mono);
            if (query === undefined)
                return;
            this.#close(query, now);
        }
    }
    /** Ends all that wait, with what they have heard so far. */
    closeAll(now) {
        for (const query of this.#open.values())
            this.#close(query, now);
    }
    #close(query, now) {
        this.#open.delete(query.handle);
        this.#deadlines.cancel(query);
        const lease = query.holding();
        const { owner, token, until } = lease ?? nothing;
        query.done({
            answered: query.answered,
            held: lease !== undefined && now.lo < until + this.#settings.maxClockSkewMs,
            confirmed: lease !== undefined && query.votesFor(lease) >= query.cell.majority,
            owner,
            token,
            until,
        });
    }
}
