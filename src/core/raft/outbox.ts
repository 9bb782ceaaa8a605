import type { RaftLog } from "./log.js";
import type { HardState, MemberId, Message, Persist, ReadState, Ready, SnapshotMeta } from "./types.js";

type Leadership = NonNullable<Ready["leadership"]>;

/** What the next `Ready` will hand out, and what was handed out before. */
export class Outbox {
  early: Message[] = [];
  notices: Message[] = [];
  messages: Message[] = [];
  reads: ReadState[] = [];
  /** Replaces the log with the next write. */
  snapshot: SnapshotMeta | undefined;
  #sequence = 0;
  #writtenTerm: number;
  #writtenVote: MemberId;
  #handedOut: Leadership;

  constructor(written: HardState, handedOut: Leadership) {
    this.#writtenTerm = written.term;
    this.#writtenVote = written.votedFor;
    this.#handedOut = handedOut;
  }

  /** Of the next write. */
  get nextSequence(): number {
    return this.#sequence + 1;
  }

  take(
    log: RaftLog,
    term: number,
    votedFor: MemberId,
    leadership: Leadership,
    entriesMax: number,
  ): Ready | undefined {
    const persist = this.#takePersist(log, term, votedFor);
    const { early, notices, messages, reads } = this;
    const before = this.#handedOut;
    const isLeadershipNew =
      before.role !== leadership.role ||
      before.leader !== leadership.leader ||
      before.term !== leadership.term;
    if (persist === undefined && !isLeadershipNew && !log.hasCommitted)
      if (early.length + notices.length + messages.length + reads.length === 0) return undefined;
    this.early = [];
    this.notices = [];
    this.messages = [];
    this.reads = [];
    this.#handedOut = leadership;
    return {
      persist,
      early,
      notices,
      messages,
      committed: log.takeCommitted(entriesMax),
      reads,
      leadership: isLeadershipNew ? leadership : undefined,
    };
  }

  #takePersist(log: RaftLog, term: number, votedFor: MemberId): Persist | undefined {
    const isStateNew = term !== this.#writtenTerm || votedFor !== this.#writtenVote;
    const { snapshot } = this;
    if (!isStateNew && snapshot === undefined && !log.hasUnwritten) return undefined;
    this.#sequence += 1;
    this.#writtenTerm = term;
    this.#writtenVote = votedFor;
    this.snapshot = undefined;
    const entries = log.takeUnwritten();
    log.writing(this.#sequence);
    return {
      sequence: this.#sequence,
      hardState: { term, votedFor, commit: log.durableCommit },
      entries,
      snapshot,
    };
  }
}
