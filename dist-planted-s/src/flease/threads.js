import { faults } from "#faults";
import { FleaseClock, emptyReading } from "./clock.js";
import { validForMs } from "./expiry.js";
/**
 * What two threads know together about how long a lease is valid. The thread that renews writes, the thread of the
 * program reads, and neither waits for the other: a busy program keeps its leases, and a look at one of them is right
 * whatever the other thread does.
 *
 * Times are whole microseconds, rounded to the safe side. `until` and `end` never go back in one tenure, so whoever
 * reads one of them old and one new believes in less than the lease is worth, never in more.
 */
/** In the order of their numbers in shared memory; the first stands for nothing that is known. */
const reasons = [
    undefined,
    "expired",
    "clock-fault",
    "max-hold",
    "closed",
    "released",
    "broken",
];
const US_PER_MS = 1_000;
const Grant = { until: 0, end: 1, over: 2, reason: 3, length: 4 };
const Thread = { upperLead: 0, signOfLife: 1, epoch: 2, distrustedEpoch: 3, length: 4 };
function newCells(length) {
    return new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT));
}
function down(ms) {
    return BigInt(Math.floor(ms * US_PER_MS));
}
function up(ms) {
    return BigInt(Math.ceil(ms * US_PER_MS));
}
function toMs(us) {
    return Number(us) / US_PER_MS;
}
/** What the two threads of one client tell each other besides its leases. */
export class SharedThreads {
    #cells;
    constructor(buffer) {
        this.#cells = buffer === undefined ? newCells(Thread.length) : new BigInt64Array(buffer);
    }
    get buffer() {
        return this.#cells.buffer;
    }
    /** How far the upper bound on the time (`hi`) is ahead of the steady clock. Written by the thread that renews. */
    get upperLeadMs() {
        return toMs(Atomics.load(this.#cells, Thread.upperLead));
    }
    set upperLeadMs(ms) {
        Atomics.store(this.#cells, Thread.upperLead, up(ms));
    }
    /** When the program's thread was last seen at work, on the steady clock. Written by that thread. */
    get signOfLifeMs() {
        return toMs(Atomics.load(this.#cells, Thread.signOfLife));
    }
    set signOfLifeMs(ms) {
        Atomics.store(this.#cells, Thread.signOfLife, down(ms));
    }
    /** Grants of another epoch than this are over. Written by the thread that renews. */
    get epoch() {
        return Number(Atomics.load(this.#cells, Thread.epoch));
    }
    set epoch(epoch) {
        Atomics.store(this.#cells, Thread.epoch, BigInt(epoch));
    }
    /** The epoch in which the program's thread has found the clocks to disagree. Written by that thread. */
    get distrustedEpoch() {
        return Number(Atomics.load(this.#cells, Thread.distrustedEpoch)) - 1;
    }
    set distrustedEpoch(epoch) {
        Atomics.store(this.#cells, Thread.distrustedEpoch, BigInt(epoch + 1));
    }
}
/** How the thread that renews tells the other about its clock. */
export class RenewingThread {
    threads;
    #owner;
    constructor(threads, owner) {
        this.threads = threads;
        this.#owner = owner;
    }
    /**
     * To be called before a validity is extended, before a release, and several times a second. A new owner, and clocks that disagree,
     * end every grant of before at once.
     *
     * @returns false when the program's thread has found that the clocks disagree: then they do so here, too.
     */
    note({ hi, mono, clocksDisagree }, owner) {
        const { threads } = this;
        if (owner !== this.#owner || clocksDisagree)
            threads.epoch += 1;
        this.#owner = owner;
        threads.upperLeadMs = hi - mono;
        return threads.distrustedEpoch !== threads.epoch;
    }
}
/**
 * The clock of the program's thread: the rules of {@link FleaseClock} on that thread's own looks, from the other thread's anchor,
 * with what the other one has seen. One for all grants of an epoch: clocks that once disagreed end them all.
 */
export class ProgramClock {
    epoch;
    #threads;
    #clock;
    #reading = emptyReading();
    #readMonoMs;
    #readWallMs;
    constructor(threads, start, settings, readMonoMs, readWallMs) {
        const { monoMs, carriedMs } = start;
        this.epoch = start.epoch;
        this.#threads = threads;
        this.#clock = new FleaseClock(monoMs, carriedMs, settings.maxClockSkewMs, settings.clockRateError);
        this.#readMonoMs = readMonoMs;
        this.#readWallMs = readWallMs;
    }
    /** One reused record. Its bounds are the later ones of both threads. */
    read() {
        const now = this.#look((mono, wall) => this.#clock.read(mono, wall, this.#reading));
        if (now.clocksDisagree && this.#threads.epoch === this.epoch)
            this.#threads.distrustedEpoch = this.epoch;
        return now;
    }
    /** The same without a trace, for observers. */
    peek() {
        return this.#look((mono, wall) => this.#clock.peek(mono, wall, this.#reading));
    }
    #look(look) {
        const { upperLeadMs } = this.#threads;
        const wall = this.#readWallMs();
        const now = look(this.#readMonoMs(), wall);
        now.hi = Math.max(now.hi, now.mono + upperLeadMs);
        if (faults.programThreadTrustsClocks)
            now.clocksDisagree = false;
        // After the clocks: the other thread may have ended all grants meanwhile.
        if (this.#threads.epoch !== this.epoch)
            now.clocksDisagree = true;
        return now;
    }
}
/** How long one grant is valid, on both clocks. */
export class SharedValidity {
    #cells;
    constructor(buffer) {
        this.#cells = buffer === undefined ? newCells(Grant.length) : new BigInt64Array(buffer);
    }
    get buffer() {
        return this.#cells.buffer;
    }
    /** A renewal was decided: the ends on the wall clock and on the steady one, and the one beyond which the tenure must not last. */
    extend(untilMs, endMs, latestMs) {
        const isLatest = latestMs <= endMs;
        if (isLatest)
            this.lossReason = "max-hold";
        Atomics.store(this.#cells, Grant.until, down(untilMs));
        Atomics.store(this.#cells, Grant.end, down(isLatest ? latestMs : endMs));
    }
    /** Why the grant has ended, or will end when it runs out. */
    get lossReason() {
        return reasons[Number(Atomics.load(this.#cells, Grant.reason))];
    }
    set lossReason(reason) {
        Atomics.store(this.#cells, Grant.reason, BigInt(reasons.indexOf(reason)));
    }
    /** For ever. MUST come before anything that lets another have the resource. */
    finish(reason) {
        this.lossReason = reason;
        Atomics.store(this.#cells, Grant.over, 1n);
    }
    /**
     * Milliseconds for which the grant is valid, 0 when it is not. The clocks are read after the ends, and the mark of
     * the end after the clocks: a thread that is stopped between two of these steps is told less, not more.
     */
    remainingMs(read) {
        const untilMs = toMs(Atomics.load(this.#cells, Grant.until));
        const endMs = toMs(Atomics.load(this.#cells, Grant.end));
        const now = read();
        if (Atomics.load(this.#cells, Grant.over) !== 0n)
            return 0;
        return validForMs(untilMs, endMs, now);
    }
    /** By the steady clock it has not run out yet: what ended it, if anything did, ended it early. */
    lastsAt(monoMs) {
        return monoMs < toMs(Atomics.load(this.#cells, Grant.end));
    }
}
