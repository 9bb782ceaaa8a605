import { faults } from "#faults";
import { looksPerStep } from "./fair-work.js";
/** A page tells of at most this many resources: with the longest names and labels, they must fit into one frame. */
export const listedMax = 500;
export function listedLease(resource, entry) {
    return {
        resource,
        owner: entry.leaseOwner,
        number: entry.leaseNumber,
        sequence: entry.leaseSequence,
        until: entry.leaseUntil,
        token: entry.token,
    };
}
/**
 * A place in the unfinished leases below a prefix, in the order in which the acceptor keeps them. That order costs the
 * acceptor nothing, and the place survives whatever comes and goes: what is there from the beginning to the end of the
 * scan is met once; what comes or goes meanwhile may be met or not.
 */
export class Scan {
    #prefix;
    #acceptor;
    #entries;
    #looksPerStep;
    isOver = false;
    constructor(acceptor, prefix, looks = looksPerStep) {
        this.#acceptor = acceptor;
        this.#prefix = prefix;
        this.#looksPerStep = looks;
        this.#entries = acceptor.entries();
    }
    /** Hands over the next leases, until `taken` says that it has enough. */
    *go(now, take) {
        for (;;) {
            const reading = now();
            for (let looked = 0; looked < this.#looksPerStep || faults.scansInOneStep; looked += 1) {
                const next = this.#entries.next();
                if (next.done === true) {
                    this.isOver = true;
                    return;
                }
                const [resource, entry] = next.value;
                if (!resource.startsWith(this.#prefix) || this.#acceptor.isOver(entry, reading))
                    continue;
                if (!take(resource, entry))
                    return;
            }
            yield;
        }
    }
}
/** The next page of a scan. */
export function* listPage(scan, now) {
    const held = [];
    yield* scan.go(now, (resource, entry) => held.push(listedLease(resource, entry)) < listedMax);
    return { held, more: !scan.isOver };
}
/** Puts the answers of several acceptors together: of each resource the lease with the highest ballot. */
export function mergeListings(listings) {
    const merged = new Map();
    for (const lease of listings.flat()) {
        const known = merged.get(lease.resource);
        const newer = known === undefined ||
            lease.number > known.number ||
            (lease.number === known.number && lease.sequence > known.sequence);
        const votes = known?.owner === lease.owner ? known.votes + 1 : newer ? 1 : known.votes;
        merged.set(lease.resource, { ...(newer ? lease : known), votes });
    }
    return [...merged.values()].sort((left, right) => (left.resource < right.resource ? -1 : 1));
}
