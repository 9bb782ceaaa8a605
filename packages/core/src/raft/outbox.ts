import type { RaftLog } from "./log.js";
import type { HardState, MemberId, Message, Persist, ReadState, Ready, SnapshotMeta } from "./types.js";

type Leadership = NonNullable<Ready["leadership"]>;

/** The hard state without the commit index. */
interface ServerState {
  readonly term: number;
  readonly votedFor: MemberId;
  readonly promisedMs: number;
}

/** Collects the content of the next `Ready`, and remembers what was returned before. */
export class Outbox {
  early: Message[] = [];
  notices: Message[] = [];
  messages: Message[] = [];
  reads: ReadState[] = [];
  objections: string[] = [];
  /** A snapshot with which the next write replaces the log. */
  snapshot: SnapshotMeta | undefined;
  #sequence = 0;
  /** The server state in the last write. */
  #written: ServerState;
  #handedOut: Leadership;

  constructor(written: HardState, handedOut: Leadership) {
    const { term, votedFor, promisedMs = 0 } = written;
    this.#written = { term, votedFor, promisedMs };
    this.#handedOut = handedOut;
  }

  /** The number of the next write. */
  get nextSequence(): number {
    return this.#sequence + 1;
  }

  take(log: RaftLog, state: ServerState, leadership: Leadership, entriesMax: number): Ready | undefined {
    const persist = this.#takePersist(log, state);
    const { early, notices, messages, objections, reads } = this;
    const before = this.#handedOut;
    const isLeadershipNew =
      before.role !== leadership.role ||
      before.leader !== leadership.leader ||
      before.term !== leadership.term;
    const hasNothing =
      persist === undefined &&
      !isLeadershipNew &&
      !log.hasCommitted &&
      [early, notices, messages, objections, reads].every((each) => each.length === 0);
    if (hasNothing) return undefined;
    this.early = [];
    this.notices = [];
    this.messages = [];
    this.reads = [];
    this.objections = [];
    this.#handedOut = leadership;
    return {
      persist,
      early,
      notices,
      messages,
      committed: log.takeCommitted(entriesMax),
      reads,
      objections,
      leadership: isLeadershipNew ? leadership : undefined,
    };
  }

  #takePersist(log: RaftLog, state: ServerState): Persist | undefined {
    const { term, votedFor, promisedMs } = state;
    const { snapshot } = this;
    const before = this.#written;
    const isStateNew =
      term !== before.term || votedFor !== before.votedFor || promisedMs !== before.promisedMs;
    if (!isStateNew && snapshot === undefined && !log.hasUnwritten) return undefined;
    this.#sequence += 1;
    this.#written = state;
    this.snapshot = undefined;
    const entries = log.takeUnwritten();
    log.writing(this.#sequence);
    return {
      sequence: this.#sequence,
      hardState: { term, votedFor, commit: log.durableCommit, promisedMs },
      entries,
      snapshot,
    };
  }
}
