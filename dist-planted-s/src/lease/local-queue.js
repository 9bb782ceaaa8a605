import { faults } from "#lease-faults";
import { LeaseholdError } from "./errors.js";
/** Callers of one process that may wait for one resource: more than this is a leak, not a queue. */
export const WAITERS_MAX = 10_000;
/**
 * The callers of this process that want one resource, and the lease on it if this process has one. It passes on one
 * *turn*: whoever has it makes the process's only attempt, and a lease that was granted keeps it until it has been
 * given back.
 *
 * Waiters take turns first in, first out. A try never queues behind waiters: it shares the answer of the attempt
 * that it meets, and makes its own only when that one found no answer.
 *
 * It has *users*: each contender from `join` to `leave`, also after it has had its answer, and the lease from `occupy` to
 * `vacate`. With the last of them it retires for ever.
 */
export class LocalQueue {
    resource;
    /** The last attempt was not granted: others seem to want the resource. */
    contended = false;
    #waiters = new Lane();
    #tries = new Lane();
    #turn = "free";
    #lease;
    /** The first waiter has just been told that another participant has the resource, and sleeps that out. */
    #heldElsewhere = false;
    #users = 0;
    #retired = false;
    #unused;
    /** `unused` is called once, when the last user has gone. */
    constructor(resource, unused) {
        this.resource = resource;
        this.#unused = unused;
    }
    /** @throws LeaseholdError `TOO_MANY_WAITERS` */
    join(contender) {
        const lane = contender.patient ? this.#waiters : this.#tries;
        if (lane.size >= WAITERS_MAX) {
            throw new LeaseholdError("TOO_MANY_WAITERS", `${WAITERS_MAX} callers of this process already wait for ${JSON.stringify(this.resource)}`);
        }
        if (this.#retired)
            throw new Error(`assertion failed: the queue of ${this.resource} has retired`);
        this.#users += 1;
        lane.add(contender);
        contender.wantsTurn = true;
        // Asked for every contender: a look at a lease that has run out ends it, even if its timer is late.
        const isHeld = this.#isHeld();
        if (isHeld && !contender.patient)
            this.#refuse(contender);
        this.#passOn();
    }
    /** The contender, back from its sleep, wants to try again. */
    rejoin(contender) {
        contender.wantsTurn = true;
        this.#passOn();
    }
    /** The attempt brought no lease. */
    settle(contender, outcome) {
        contender.hasTurn = false;
        this.#turn = "free";
        this.contended = true;
        if (!contender.patient)
            this.#tries.delete(contender);
        if (outcome === "held") {
            this.#heldElsewhere = contender.patient;
            this.#refuseTries();
        }
        this.#passOn();
    }
    /** The attempt brought a lease, which keeps the turn. */
    occupy(contender, lease) {
        contender.hasTurn = false;
        this.#turn = "lease";
        this.#users += 1;
        this.#lease = lease;
        this.contended = false;
        this.#refuseTries();
    }
    /** The lease has been given back. */
    vacate() {
        this.#lease = undefined;
        this.#turn = "free";
        this.#passOn();
        this.#userGone();
    }
    /** The caller is served or has gone. Once for each that joined. */
    leave(contender) {
        if (contender.hasTurn)
            this.settle(contender, "unanswered");
        this.#tries.delete(contender);
        if (this.#waiters.delete(contender))
            this.#heldElsewhere = false;
        contender.wantsTurn = false;
        this.#passOn();
        this.#userGone();
    }
    /** The resource may have become free: the first waiter should not sleep on. False when there is none. */
    hint() {
        this.#heldElsewhere = false;
        const head = this.#waiters.first;
        head?.wake();
        return head !== undefined;
    }
    /** Another has it, as far as this process knows. It looks at its own lease, whose loss nobody may have noticed yet. */
    #isHeld() {
        if (this.#turn === "lease")
            return this.#lease !== undefined && this.#lease.remaining() > 0;
        return this.#turn === "free" && this.#heldElsewhere;
    }
    /**
     * The first waiter goes before a try. As it sleeps after an attempt of its own, and a try that has its answer goes,
     * neither can starve the other.
     */
    #passOn() {
        if (this.#turn !== "free")
            return;
        const head = this.#waiters.first;
        const next = head?.wantsTurn === true ? head : this.#tries.first;
        if (next === undefined)
            return;
        this.#turn = "attempt";
        this.#heldElsewhere = false;
        next.wantsTurn = false;
        next.hasTurn = true;
        next.wake();
    }
    #userGone() {
        this.#users -= 1;
        const looksEmpty = this.#turn === "free" && this.#waiters.size === 0 && this.#tries.size === 0;
        if (this.#users === 0)
            this.#retired = true;
        if (this.#retired || (faults.emptyQueueIsDropped && looksEmpty))
            this.#unused(this);
    }
    #refuseTries() {
        for (const contender of this.#tries.all()) {
            if (!contender.hasTurn)
                this.#refuse(contender);
        }
    }
    #refuse(contender) {
        this.#tries.delete(contender);
        contender.refused = true;
        contender.wake();
    }
}
/** Contenders in the order in which they came. Most queues have none most of the time: an empty lane has no set. */
class Lane {
    #contenders;
    get size() {
        return this.#contenders?.size ?? 0;
    }
    get first() {
        return this.#contenders?.values().next().value;
    }
    all() {
        return this.#contenders ?? [];
    }
    add(contender) {
        this.#contenders ??= new Set();
        this.#contenders.add(contender);
    }
    delete(contender) {
        const present = this.#contenders?.delete(contender) ?? false;
        if (this.size === 0)
            this.#contenders = undefined;
        return present;
    }
}
