import { faults } from "#delta-faults";
import { compareStamps } from "../stamp.js";
import { contend } from "./contend.js";
import { release } from "./renew.js";
import { greatest, shownBy, Site } from "./site.js";
/**
 * Shared and exclusive leases (section 10): readers contend under one common name and wait for no other reader; a writer contends
 * under its own, and waits for all. Readers of one time share an epoch. A record with `readers` bears the common name; who
 * wrote it stands inside.
 *
 * In a store with one cell a reader's record takes the place of another's, and is then what keeps writers away from both. So it is at
 * least as good for the other (`covers`), and nobody ever frees it: it runs out by itself.
 */
export class ReaderSite extends Site {
    recordAfter(seen) {
        const record = { ...super.recordAfter(seen), readers: [this.environment.writer] };
        return readersIn(seen).reduce(covering, record);
    }
    /** One name for all: also those that begin at the same moment share an epoch. */
    get contender() {
        return "readers";
    }
    /** That of the readers who are there, unless a writer may have had it or a greater one. */
    nextEpoch(seen) {
        const joined = greatest(readersIn(seen).map(({ epoch }) => epoch));
        const others = greatest([...othersIn(seen).map(({ epoch }) => epoch), seen.floor.epoch]);
        return joined > others ? joined : super.nextEpoch(seen);
    }
    renewed(held, number, seen) {
        return [held, ...readersIn(seen)].reduce(covering, super.renewed(held, number, seen));
    }
    mustWaitFor(record) {
        return !isReaders(record);
    }
    /** The greatest record of those who are not readers decides: as for a writer, to whom all readers are one. */
    isMine(again, record) {
        return othersIn(again).every((other) => compareStamps(other, record) < 0);
    }
    isNoSuccessor(seen, held) {
        return othersIn(seen).every(({ number }) => number <= held.number);
    }
    mayTake(content, seen, next) {
        return isReaders(content) ? this.#above(content, next) : super.mayTake(content, seen, next);
    }
    mayRenewOver(content, seen, next) {
        return isReaders(content) ? this.#above(content, next) : super.mayRenewOver(content, seen, next);
    }
    get isShared() {
        return true;
    }
    /**
     * What to write over another reader's record: `next`, or something greater that covers the other as well. Never nothing, however good
     * the other's record is: a writer may have been waiting for the end of that for long.
     */
    #above(content, next) {
        if (compareStamps(content, next) < 0 && covers(next, content))
            return true;
        const number = greatest([content.number, next.number]) + 1n;
        return { ...covering(next, content), number, nonce: this.nextNonce() };
    }
}
/** Waits until no writer holds the register, and reads it together with other readers. */
export function contendShared(site, from) {
    return contend(site, from);
}
/** A reader that is done just stops renewing: the record that stands there may be what another holds by as well. */
export function releaseShared(site, held) {
    return release(site, held);
}
function isReaders(record) {
    return record.readers !== undefined && record.state === "held";
}
function readersIn(seen) {
    return shownBy(seen).filter(isReaders);
}
function othersIn(seen) {
    return shownBy(seen).filter((record) => !isReaders(record));
}
/**
 * Is `record` as good for its readers as `other`? By its Δ a writer waits for all of them, and the writer's epoch is one more: so
 * neither may ever become less.
 */
function covers(record, other) {
    if (faults.readerHidesOthers)
        return true;
    return record.leaseMs >= other.leaseMs && record.epoch >= other.epoch;
}
function covering(record, other) {
    if (faults.readerHidesOthers)
        return record;
    const epoch = greatest([record.epoch, other.epoch]);
    return { ...record, epoch, leaseMs: Math.max(record.leaseMs, other.leaseMs) };
}
