import { faults } from "#delta-faults";
import { LeaseholdError } from "../../lease/errors.js";
import { noFloor } from "../lease-protocol.js";
import { LastingFarm } from "./lasting.js";
import { compareStamps, later, sameStamp } from "../stamp.js";
import { update } from "./update.js";
/**
 * The regular multi-writer register over n > 2t stores, t of which may never answer (section 3): a read returns the
 * last value that was written before it, or one that is being written. On atomic stores one cell keeps the
 * greater timestamp; on slotted ones every writer has a slot, and a read looks at all of them.
 */
export class RegularRegister {
    delayMs;
    #farm;
    #name;
    #codec;
    /** What stood in each atomic store when it was last heard of: what a `replace` expects. */
    #contents = [];
    /** What each slotted store has shown when it was read last, and the mark by which it says that nobody has announced more. */
    #shown = [];
    /** Stores that had more to say since {@link heard} was called for them. */
    #news = new Set();
    /** The stores that the last read counts. */
    #counted = [];
    /** The greatest that a read returned: a write that its writer left half done would otherwise come and go for ever. */
    #greatest;
    constructor(options) {
        this.#farm = options.runsOut === true ? options.farm : new LastingFarm(options.farm);
        this.#name = options.name;
        this.#codec = options.codec;
        this.delayMs = options.delayMs;
    }
    /** True when every store can compare and set. */
    get isAtomic() {
        for (let store = 0; store < this.#farm.size; store += 1)
            if (this.#farm.kindOf(store) !== "atomic")
                return false;
        return true;
    }
    /**
     * Asks all, takes the answers of a majority, returns the greatest timestamp.
     *
     * @throws LeaseholdError `STORE_FORGOTTEN`
     */
    read(begun) {
        return this.#read(begun, false);
    }
    /**
     * The same for whoever holds. Of a store that says that nothing was announced it counts what it has seen there before, and its own
     * write since: what others renew or free is no concern of a holder. A contender's record is announced before its pause of 2δ
     * begins, so a look that misses it ended before that pause, and so did the write that followed an earlier look: the contender
     * finds that write when it reads again, or the holder the announcement. See `ARCHITECTURE.md`.
     */
    readByHolder(begun) {
        return this.#read(begun, true);
    }
    /** False when no store that the last read counts had more to say since it was {@link heard}. */
    get hasNews() {
        return this.#counted.some((store) => this.#news.has(store));
    }
    /** What these stores had to say of all registers of the resource is known. */
    heard(stores) {
        for (const store of stores)
            this.#news.delete(store);
    }
    *#read(begun, byHolder) {
        if (this.#farm instanceof LastingFarm)
            this.#farm.check();
        const { size, majority } = this.#farm;
        const requests = Array.from({ length: size }, (_, store) => this.#readRequest(store, byHolder));
        const readings = [];
        const take = (answers) => {
            for (const [store, answer] of answers.entries())
                if (answer !== undefined)
                    readings[store] ??= this.#readingOf(store, answer);
            return readings.filter((reading) => "failed" in reading).length;
        };
        const enough = (answers) => {
            const failed = take(answers);
            // What counts, and not what has merely answered: one that is damaged must not stand in the way of the others.
            return size - failed < majority || count(readings) - failed >= majority;
        };
        // What comes too late does not count, and shows what a later look need not read again.
        const late = (store, answer) => {
            if (this.#farm.kindOf(store) === "slotted")
                this.#readingOf(store, answer);
        };
        const { answers, now, cancelled } = yield {
            kind: "ask",
            requests,
            enough,
            timeoutMs: this.delayMs,
            late,
        };
        take(answers);
        let greatest;
        let floor = noFloor;
        const stores = Array.from({ length: size });
        const failures = [];
        for (const [store, reading] of readings.entries()) {
            if (reading === undefined)
                continue;
            if ("failed" in reading) {
                failures.push(reading.failed);
                continue;
            }
            if (reading.length === 0 && this.#farm.floorOf(store).number > floor.number)
                floor = this.#farm.floorOf(store);
            greatest = reading.reduce(later, greatest);
            stores[store] = reading;
        }
        if (count(stores) < majority)
            return this.#unanswered(failures, now, cancelled);
        this.#counted = stores.flatMap((reading, store) => (reading === undefined ? [] : [store]));
        this.#greatest = faults.flickeringReader ? greatest : later(this.#greatest, greatest);
        return { kind: "read", value: this.#greatest, stores, floor, begun, ended: now, cancelled };
    }
    /**
     * Both phases of a write: reads a majority for the greatest number, and sends what `make` makes of the next one. A
     * store keeps the greater of what it has and what it is sent.
     */
    *write(make, begun) {
        const seen = yield* this.read(begun);
        if (seen.kind === "unanswered")
            return { kind: "unanswered", failures: [], ended: seen.ended };
        const value = make(numberAfter(seen), seen);
        return yield* this.#send(value, (content) => compareStamps(content, value) < 0, "done", begun);
    }
    /**
     * The second phase alone, for whoever has just read. An atomic store takes the value only over a content that
     * `mayReplace` allows; one with a greater value than is allowed refuses, unless `value` stands there already.
     */
    send(value, mayReplace, begun) {
        return this.#send(value, mayReplace, "refuse", begun, { quiet: faults.quietClaims });
    }
    /** The same for a renewal: of it no holder has to hear. */
    sendQuietly(value, mayReplace, begun) {
        return this.#send(value, mayReplace, "refuse", begun, { quiet: true });
    }
    /** Writes wherever `mayReplace` allows it, whether or not that makes a majority. */
    sendAnywhere(value, mayReplace, begun) {
        return this.#send(value, mayReplace, "refuse", begun, { bestEffort: true });
    }
    *#send(value, mayReplace, otherwise, begun, how = {}) {
        let wanted = value;
        const write = () => ({ kind: "write", next: this.#codec.encode(wanted) });
        const step = (store, content) => {
            if (this.#farm.kindOf(store) === "slotted" || content === undefined)
                return write();
            const stands = this.#decode(content);
            if (stands === undefined)
                return { kind: "refuse" };
            if (sameStamp(stands, wanted))
                return { kind: "done" };
            const verdict = mayReplace(stands, wanted) || faults.blindOverwrite;
            if (verdict === false)
                return { kind: otherwise };
            if (verdict !== true)
                wanted = verdict;
            return write();
        };
        const { delayMs: timeoutMs } = this;
        const contents = this.#contents;
        const change = { register: this.#name, contents, step, begun, timeoutMs, ...how };
        for (const store of this.#shown.keys())
            contents[store] = undefined;
        const updated = yield* update(this.#farm, change);
        for (const store of this.#shown.keys())
            if (contents[store] !== undefined)
                this.#wroteTo(store, wanted);
        return updated;
    }
    #readRequest(store, byHolder) {
        const quietSince = byHolder ? this.#shown[store]?.mark : undefined;
        return { op: "read", register: this.#name, ...(quietSince !== undefined && { quietSince }) };
    }
    /** Of what this process wrote a store shows the last: it has a slot of its own there. */
    #wroteTo(store, value) {
        const shown = this.#shown[store];
        if (shown === undefined)
            return;
        const others = shown.values.filter(({ writer }) => writer !== value.writer);
        this.#shown[store] = { ...shown, values: [...others, value] };
    }
    #readingOf(store, answer) {
        const shown = this.#shown[store];
        if (answer.kind === "quiet" && answer.id === this.#farm.idOf(store) && shown !== undefined)
            return shown.values;
        this.#news.add(store);
        if (answer.kind !== "cells" || answer.id !== this.#farm.idOf(store))
            return { failed: answer.kind === "failed" ? answer.error : undefined };
        if (this.#farm.kindOf(store) === "atomic")
            this.#contents[store] = answer.cells[0];
        const { mark } = answer;
        try {
            const values = answer.cells.map((cell) => this.#codec.decode(cell));
            this.#shown[store] = mark === undefined ? undefined : { mark, values };
            return values;
        }
        catch (failed) {
            // Foreign or damaged: never taken for an empty cell, so the store counts as silent.
            return { failed };
        }
    }
    #decode(content) {
        try {
            return this.#codec.decode(content);
        }
        catch {
            return undefined;
        }
    }
    #unanswered(failures, ended, cancelled) {
        const { size, majority } = this.#farm;
        const first = failures.find((failure) => failure instanceof LeaseholdError);
        const message = `no ${majority} of ${size} stores answered within ${this.delayMs} ms`;
        const error = first === undefined
            ? new LeaseholdError("NO_QUORUM", message)
            : new LeaseholdError(first.code, `${message}: ${first.message}`, { cause: first });
        return { kind: "unanswered", error, ended, cancelled };
    }
}
function count(readings) {
    return readings.filter((reading) => reading !== undefined).length;
}
/** One more than the greatest number that a read has seen. */
export function numberAfter(seen) {
    const number = seen.value?.number ?? 0n;
    return (number > seen.floor.number ? number : seen.floor.number) + 1n;
}
