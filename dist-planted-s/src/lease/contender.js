import { LeaseholdError } from "./errors.js";
import { formatDuration } from "./duration.js";
/**
 * One caller that wants a resource: how long it is willing to wait, whether it has given up, and its sleep.
 *
 * A patient contender waits its turn until its deadline; one that is not patient (a try) wants one answer.
 */
export class Contender {
    resource;
    patient;
    /** On the steady clock. */
    deadlineMs;
    /** It waits for the turn to make an attempt. Written by the queue. */
    wantsTurn = false;
    /** It may make an attempt now. Written by the queue. */
    hasTurn = false;
    /** A try that learnt that another has the resource. Written by the queue. */
    refused = false;
    /** Why the last attempt failed; what a caller is told whose deadline has come. */
    lastError;
    /** Set by the provider during an attempt. */
    onCancel;
    #world;
    #waitMs;
    #gaveUp;
    #woken = false;
    #resume;
    constructor(world, resource, patient, waitMs) {
        this.#world = world;
        this.resource = resource;
        this.patient = patient;
        this.#waitMs = waitMs;
        this.deadlineMs = world.clock.monotonicMs() + waitMs;
    }
    get hasGivenUp() {
        return this.#gaveUp !== undefined;
    }
    get cancelled() {
        return this.hasGivenUp;
    }
    /** The caller wants no lease any more (its signal aborted, the participant closes). */
    giveUp(reason) {
        if (this.#gaveUp !== undefined)
            return;
        this.#gaveUp = { reason };
        this.onCancel?.();
        this.wake();
    }
    /** @throws the reason for which the caller gave up, if it did. */
    throwIfGivenUp() {
        if (this.#gaveUp !== undefined)
            throw this.#gaveUp.reason;
    }
    /** @throws why it had to wait until now, if its deadline has come. */
    throwIfLate() {
        if (this.#world.clock.monotonicMs() < this.deadlineMs)
            return;
        if (this.lastError !== undefined)
            throw this.lastError;
        throw new LeaseholdError("TIMEOUT", `waited ${formatDuration(this.#waitMs)} for ${JSON.stringify(this.resource)} and another still has it`);
    }
    /** Ends the sleep, or the next one if it is awake. */
    wake() {
        this.#woken = true;
        this.#resume?.();
    }
    /** What happened until now is no reason to wake from the next sleep. */
    forgetWakes() {
        this.#woken = false;
    }
    /** Sleeps until `ms` have passed, the deadline has come or somebody wakes it. */
    async sleep(ms) {
        if (!this.#woken) {
            const { clock, timers } = this.#world;
            const delayMs = Math.min(ms, this.deadlineMs - clock.monotonicMs());
            let timer;
            await new Promise((resolve) => {
                this.#resume = resolve;
                if (delayMs < Infinity)
                    timer = timers.after(Math.max(0, delayMs), resolve);
            });
            timer?.cancel();
            this.#resume = undefined;
        }
        this.#woken = false;
    }
}
