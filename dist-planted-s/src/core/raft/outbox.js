import { faults } from "#raft-faults";
import { nobody } from "./types.js";
/** What the next `Ready` will hand out, and what was handed out before. */
export class Outbox {
    early = [];
    messages = [];
    reads = [];
    /** Replaces the log with the next write. */
    snapshot;
    #sequence = 0;
    #writtenTerm;
    #writtenVote;
    #told;
    constructor(written, told) {
        this.#writtenTerm = written.term;
        this.#writtenVote = written.votedFor;
        this.#told = told;
    }
    /** Of the next write. */
    get nextSequence() {
        return this.#sequence + 1;
    }
    take(log, term, votedFor, leadership, entriesMax) {
        const persist = this.#takePersist(log, term, votedFor);
        const { early, messages, reads } = this;
        const before = this.#told;
        const isTold = before.role === leadership.role &&
            before.leader === leadership.leader &&
            before.term === leadership.term;
        if (persist === undefined && isTold && !log.hasCommitted)
            if (early.length === 0 && messages.length === 0 && reads.length === 0)
                return undefined;
        this.early = [];
        this.messages = [];
        this.reads = [];
        this.#told = leadership;
        return {
            persist,
            early,
            messages,
            committed: log.takeCommitted(entriesMax),
            reads,
            leadership: isTold ? undefined : leadership,
        };
    }
    #takePersist(log, term, votedFor) {
        const isStateNew = term !== this.#writtenTerm || votedFor !== this.#writtenVote;
        const { snapshot } = this;
        if (!isStateNew && snapshot === undefined && !log.hasUnwritten)
            return undefined;
        this.#sequence += 1;
        this.#writtenTerm = term;
        this.#writtenVote = votedFor;
        this.snapshot = undefined;
        const entries = log.takeUnwritten();
        log.writing(this.#sequence);
        return {
            sequence: this.#sequence,
            hardState: {
                term,
                votedFor: faults.voteNotPersisted ? nobody : votedFor,
                commit: log.durableCommit,
            },
            entries,
            snapshot,
        };
    }
}
