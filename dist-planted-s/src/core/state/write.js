import { unitsPerStep } from "./steps.js";
/** What one write transaction changes: everything in one revision, or nothing and no revision. */
export class Write {
    leases;
    room;
    #revisions;
    #revision;
    /** What it has changed so far, in order. */
    changes = [];
    constructor(revisions, leases, room) {
        this.room = room;
        this.#revisions = revisions;
        this.leases = leases;
        this.#revision = revisions.current + 1;
    }
    get view() {
        return this.#revisions;
    }
    get revision() {
        return this.changes.length > 0 ? this.#revision : this.#revisions.current;
    }
    /** The lease must exist. */
    put(key, value, lease) {
        this.leases.attach(key, lease);
        this.changes.push(this.#revisions.put(key, value, lease, this.#revision));
    }
    /** What was deleted, as it was before. */
    *delete(range) {
        const gone = [];
        const keys = [];
        let looked = 0;
        for (const version of this.view.range(range, this.revision)) {
            looked += 1;
            if (looked % unitsPerStep === 0)
                yield;
            if (version === undefined)
                continue;
            gone.push(version);
            keys.push(version.key);
        }
        yield* this.deleteKeys(keys);
        return gone;
    }
    *deleteKeys(keys) {
        for (let index = 0; index < keys.length; index++) {
            this.#deleteKey(keys[index]);
            if (index % unitsPerStep === unitsPerStep - 1)
                yield;
        }
    }
    /** All of it can be read from now on. */
    commit() {
        this.#revisions.commit(this.revision);
    }
    #deleteKey(key) {
        const deletion = this.#revisions.delete(key, this.#revision);
        if (deletion === undefined)
            return;
        this.leases.detach(key);
        this.changes.push(deletion);
    }
}
