import { keyOf } from "../../../core/state/keys.js";
import { bytes } from "../programs/requests.js";
import { CoreViolationError } from "../violation.js";
/**
 * An acknowledged refresh implies that the lease's keys stood at the revision of its header, and that whoever answered had
 * not been deposed when the client asked.
 */
export class Refreshes {
    #world;
    constructor(world) {
        this.#world = world;
    }
    /** @param termBefore the newest term of which anything was committed when the client asked */
    acknowledged(key, keyRevision, { raftTerm, revision }, termBefore) {
        if (raftTerm < BigInt(termBefore))
            throw new CoreViolationError("refresh", `refreshed in term ${raftTerm}, after ${termBefore} had begun`);
        const { revisions } = this.#world().reference.state;
        const at = Number(revision);
        // Nothing is known of the key, or nothing can be known any more.
        if (keyRevision === undefined || revision < keyRevision || at < revisions.compacted)
            return;
        if (revisions.getAt(keyOf(bytes(key)), at) === undefined)
            throw new CoreViolationError("refresh", `refreshed at revision ${revision}, where ${key} was gone`);
    }
}
