import { LeaseholdError, LeaseLostError } from "../lease/errors.js";
import { BUSY_RETRY_MS } from "./admission.js";
import { fleaseGuarantees } from "./guarantees.js";
import { FleaseInspection } from "./inspection.js";
import { RenewalQueue } from "./renewal-queue.js";
import { Operation } from "./slot.js";
class FleaseGrant {
    resource;
    token;
    slot;
    ended = false;
    lossReason;
    /** Who waits for the renewal that was asked for, and for how long it asks, ms. */
    renewing;
    renewTtlMs = 0;
    dueMs = 0;
    heapIndex = -1;
    heapSequence = 0;
    #driver;
    constructor(slot, driver) {
        this.resource = slot.resource;
        this.token = BigInt(slot.token);
        this.slot = slot;
        this.#driver = driver;
    }
    remainingMs() {
        if (this.ended)
            return 0;
        return this.#driver.peer.proposer.remainingMs(this.slot, this.#driver.now());
    }
    settleRenewal(longer) {
        const settle = this.renewing;
        this.renewing = undefined;
        settle?.(longer);
    }
}
function renewsTooLate() {
    return new LeaseholdError("OVERLOADED", "this participant holds more than it can renew in time at present, and begins nothing new");
}
/** Leases among peers, as a ground for the waist: turns its calls into operations of a proposer, and outcomes into promises. */
export class FleaseProvider {
    guarantees;
    inspection;
    #driver;
    /** By slot handle. */
    #attempts = [];
    #grants = [];
    #renewals = new RenewalQueue();
    #renewalsPutOff = false;
    #events;
    constructor(driver) {
        this.#driver = driver;
        this.guarantees = fleaseGuarantees(driver.peer.settings);
        this.inspection = new FleaseInspection(driver);
    }
    get holder() {
        return this.#driver.peer.proposer.owner;
    }
    attach(events) {
        this.#events = events;
    }
    attempt(request, cancellation) {
        const { peer } = this.#driver;
        const fault = peer.fault;
        if (fault !== undefined)
            return Promise.resolve({ kind: "unanswered", error: new LeaseholdError("CLOCK_SKEW", fault) });
        const now = this.#driver.now();
        if (this.#renewals.isLate(now.mono) && this.#reachesMajority)
            return Promise.resolve({ kind: "unanswered", error: renewsTooLate(), retryInMs: BUSY_RETRY_MS });
        const lapsed = peer.proposer.slotOf(request.resource);
        if (lapsed !== undefined && lapsed.operation === Operation.none)
            this.#letGo(lapsed, now);
        return new Promise((settle) => {
            const { resource, ttlMs, timeoutMs, contended, waiting } = request;
            const slot = peer.proposer.acquire(resource, ttlMs, timeoutMs, !contended, now, waiting);
            this.#attempts[slot.index] = { settle, cancellation };
            if (cancellation !== undefined) {
                cancellation.onCancel = () => {
                    peer.proposer.cancel(slot);
                    this.#driver.poke();
                };
                if (cancellation.cancelled)
                    cancellation.onCancel();
            }
            this.#driver.poke();
        });
    }
    renew(grant, ttlMs) {
        const held = grant;
        if (held.ended)
            return Promise.resolve(false);
        return new Promise((settle) => {
            held.renewing = settle;
            held.renewTtlMs = ttlMs;
            this.#renewals.add(held, held.slot.holdEnd, ttlMs);
            this.#beginRenewals();
        });
    }
    #beginRenewals() {
        const { peer } = this.#driver;
        for (let held = this.#renewals.next(); held !== undefined; held = this.#renewals.next())
            peer.proposer.renew(held.slot, held.renewTtlMs, this.#driver.now());
        this.#driver.poke();
    }
    release(grant) {
        const held = grant;
        if (!held.ended) {
            this.#letGo(held.slot, this.#driver.now());
            this.#driver.poke();
        }
        return Promise.resolve();
    }
    /**
     * Until when a grant is valid if nothing more is renewed, on the wall clock and on the steady one, and whether it was
     * broken; undefined when it has ended.
     */
    validity(grant) {
        const { slot, ended } = grant;
        if (ended || !slot.holding)
            return undefined;
        return { untilMs: slot.holdUntil, endMs: slot.holdEnd, broken: slot.barred };
    }
    /** What every other thread needs to make readings of its own as this peer does. */
    clockStart(epoch) {
        const monoMs = this.#driver.now().mono;
        return { epoch, monoMs, carriedMs: this.#driver.peer.carriedMs(monoMs) };
    }
    /** Another thread has found that the clocks disagree: everything held is gone. */
    distrustClocks() {
        this.#driver.peer.distrustClocks();
    }
    /** The grant ended before its time by somebody's look: its release tells nobody, as a program may still rely on what it was told. */
    letRunOut(grant) {
        const { slot, ended } = grant;
        if (!ended)
            slot.forgetBallots();
    }
    async query(resource, timeoutMs) {
        const { peer } = this.#driver;
        const answer = await new Promise((done) => {
            peer.queries.ask(resource, peer.proposer.owner, timeoutMs, this.#driver.now(), done);
            this.#driver.poke();
        });
        if (!answer.answered)
            return { state: "unknown" };
        if (!answer.held)
            return { state: "free", confirmed: true };
        const { owner, token, until, confirmed } = answer;
        const remainingMs = Math.max(0, until - this.#driver.now().wall);
        return { state: "held", confirmed, holder: owner, token: BigInt(token), remainingMs };
    }
    list(prefix, timeoutMs, onIncomplete) {
        return this.inspection.list(prefix, timeoutMs, onIncomplete);
    }
    /** What still waits ends now: nobody wakes the peer from here on. */
    close() {
        this.inspection.close();
        this.#driver.peer.queries.closeAll(this.#driver.now());
        for (const grant of this.#grants) {
            if (grant === undefined)
                continue;
            this.#renewals.remove(grant);
            grant.settleRenewal(false);
        }
        return this.#driver.close();
    }
    #letGo(slot, now) {
        const grant = this.#grants[slot.index];
        if (grant !== undefined)
            grant.ended = true;
        this.#driver.peer.proposer.release(slot, now);
        this.#grants[slot.index] = undefined;
    }
    /** A member says that somebody asks for a resource that is held here. */
    releaseRequested(request) {
        this.#events?.releaseRequested?.(request);
    }
    /** An acceptor says that the resource was released. */
    hinted(resource) {
        return this.#events?.hint(resource) ?? false;
    }
    // Outcomes, written by the proposer in the middle of a step
    acquired(slot) {
        const grant = new FleaseGrant(slot, this.#driver);
        this.#grants[slot.index] = grant;
        this.#settle(slot, { kind: "granted", grant });
    }
    refused(slot, holder, retryInMs) {
        this.#settle(slot, { kind: "held", holder, retryInMs });
    }
    unanswered(slot, why) {
        const error = this.#errorFor(why, slot);
        this.#settle(slot, {
            kind: "unanswered",
            error,
            ...(why === "busy" && { retryInMs: BUSY_RETRY_MS }),
        });
    }
    renewed(slot, longer) {
        this.#renewals.ended();
        this.#grants[slot.index]?.settleRenewal(longer);
        if (!this.#renewals.waits || this.#renewalsPutOff)
            return;
        // Not at once: the proposer must not be called in the middle of a step. One time for all that this turn ends.
        this.#renewalsPutOff = true;
        void Promise.resolve().then(() => {
            this.#renewalsPutOff = false;
            this.#beginRenewals();
        });
    }
    lapsed(slot, why) {
        const grant = this.#grants[slot.index];
        if (grant === undefined)
            return;
        grant.lossReason = why === "barred" ? "broken" : why;
        if (this.#renewals.remove(grant))
            grant.settleRenewal(false);
        const error = new LeaseLostError(grant.resource, grant.lossReason);
        // Not at once: the waist will answer with a release, and the proposer must not be called in the middle of a step.
        void Promise.resolve().then(() => this.#events?.lost(grant, error));
    }
    #settle(slot, outcome) {
        const pending = this.#attempts[slot.index];
        if (pending === undefined)
            return;
        this.#attempts[slot.index] = undefined;
        if (pending.cancellation !== undefined)
            pending.cancellation.onCancel = undefined;
        pending.settle(outcome);
    }
    get #reachesMajority() {
        return this.#driver.reachable() > this.#driver.peer.settings.members.length / 2;
    }
    #whyNoQuorum() {
        const total = this.#driver.peer.settings.members.length;
        const connected = this.#driver.reachable();
        const silent = connected > total / 2 ? "; those that have just started are silent for a while" : "";
        return `no majority of the ${total} members answered in time: ${connected} are connected${silent}`;
    }
    #whyFull(fullBy) {
        const ours = this.holder.slice(0, this.holder.lastIndexOf("."));
        if (fullBy === ours)
            return `the members keep as many resources for ${JSON.stringify(ours)} as they may: release some, or use fewer names`;
        return `the members keep as many resources as they may, the most of them for ${JSON.stringify(fullBy)}`;
    }
    #errorFor(why, slot) {
        switch (why) {
            case "no-quorum":
                return this.#driver.refusal() ?? new LeaseholdError("NO_QUORUM", this.#whyNoQuorum());
            case "out-of-bounds":
                return new LeaseholdError("CLOCK_SKEW", "the members refuse this participant's times: its clock and theirs are too far apart");
            case "full":
                return new LeaseholdError("RESOURCES_FULL", this.#whyFull(slot.fullBy));
            case "busy":
                return new LeaseholdError("OVERLOADED", "the members have more to do than they can do in time");
            case "contention":
                return new LeaseholdError("TIMEOUT", "others competed for the resource all the time");
            case "cancelled":
                return new LeaseholdError("TIMEOUT", "the attempt was ended by its caller");
            case "barred":
                return new LeaseholdError("LEASE_BROKEN");
            case "clock-fault":
                return new LeaseholdError("CLOCK_SKEW", this.#driver.peer.fault);
        }
    }
}
/** The part of a peer's sink that is its provider's, which is made after the peer. */
export function outcomesFor(provider) {
    return {
        acquired: (slot) => provider().acquired(slot),
        refused: (slot, holder, retryInMs) => provider().refused(slot, holder, retryInMs),
        unanswered: (slot, why) => provider().unanswered(slot, why),
        renewed: (slot, longer) => provider().renewed(slot, longer),
        lapsed: (slot, why) => provider().lapsed(slot, why),
    };
}
