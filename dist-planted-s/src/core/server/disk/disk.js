import { inTurns } from "../turns.js";
/**
 * What a server writes: its log, and snapshots. All that is written to the log becomes durable in the order of the calls, and
 * after one that has failed nothing is written to it any more: what follows rests on what came before.
 */
export class Disk {
    #journal;
    #snapshots;
    /** The last step that others wait for: an installation, of which the log goes on. Rejected for ever if it failed. */
    #installing;
    /** The log goes on after this. */
    #base;
    constructor(journal, snapshots, base) {
        this.#journal = journal;
        this.#snapshots = snapshots;
        this.#base = base;
    }
    /**
     * Resolves when it is on disk.
     *
     * @param received the content of `persist.snapshot`
     * @throws LeaseholdError `DISK_FAILED`, and then for ever
     */
    persist(persist, received) {
        const { entries, hardState, snapshot } = persist;
        if (snapshot === undefined)
            return this.#inOrder(() => this.#journal.append({ entries, hardState }));
        const installing = this.#inOrder(async () => {
            await this.#snapshots.save(snapshot, inTurns(received?.pieces ?? []));
            await this.#journal.append({ installed: snapshot, entries, hardState });
            await this.#goOnFrom(snapshot.index);
        });
        this.#installing = installing;
        installing.then(() => {
            if (this.#installing === installing)
                this.#installing = undefined;
        }, () => undefined);
        return installing;
    }
    /** Writes a snapshot of the own state, beside the log's own writes, and then forgets the log before it. */
    async saveSnapshot({ meta, pieces }) {
        await this.#snapshots.save(meta, inTurns(pieces));
        await this.#inOrder(async () => {
            // A leader's snapshot that came meanwhile is newer.
            if (meta.index <= this.#base)
                return;
            await this.#journal.append({ compacted: meta });
            await this.#goOnFrom(meta.index);
        });
    }
    /** The journal says on disk that it goes on from that snapshot: only now is what came before of no use. */
    async #goOnFrom(index) {
        if (index <= this.#base)
            return;
        this.#base = index;
        await this.#journal.removeUpTo(index);
        await this.#snapshots.removeBefore(index);
    }
    #inOrder(write) {
        return this.#installing === undefined ? write() : this.#installing.then(write);
    }
}
