import { frozen, snapshotPieces } from "../state/snapshot.js";
/** Decides when the state is written down as a whole, so that the log behind it can go. */
export class Snapshots {
    #context;
    #entries = 0;
    #bytes = 0;
    #isBeingWritten = false;
    constructor(context) {
        this.#context = context;
    }
    applied(bytes) {
        this.#entries += 1;
        this.#bytes += bytes;
    }
    /** One came from the leader, and stands for all that was applied. */
    installed() {
        this.#entries = 0;
        this.#bytes = 0;
    }
    take() {
        const { appliedIndex, limits, raft, state } = this.#context;
        const dueBytes = Math.min(limits.snapshotBytesMax, Math.max(limits.snapshotBytes, state.bytes));
        const isDue = this.#entries >= limits.snapshotEntries || this.#bytes >= dueBytes;
        if (!isDue || this.#isBeingWritten)
            return undefined;
        this.installed();
        this.#isBeingWritten = true;
        return {
            meta: raft.snapshotMeta(appliedIndex),
            pieces: snapshotPieces(frozen(state), limits.snapshotPieceBytes),
        };
    }
    written(meta) {
        this.#isBeingWritten = false;
        const { keepBytes, keepEntries } = this.#context.limits;
        this.#context.raft.compact(meta, keepEntries, keepBytes);
    }
    failed() {
        this.#isBeingWritten = false;
    }
}
