/**
 * The vocabulary of the replicated log (Ongaro and Ousterhout, *In Search of an Understandable Consensus
 * Algorithm*, and Ongaro's thesis, *Consensus: Bridging Theory and Practice*).
 */

/** A member of the core; 64 bits as a bigint, as etcd's clients see it. 0 is nobody. */
export type MemberId = bigint;

export const nobody: MemberId = 0n;

export type Entry = NormalEntry | ConfigEntry;

interface EntryBase {
  readonly index: number;
  readonly term: number;
}

/** `data` is for the state machine. Empty: the no-op that a new leader begins its term with (Raft 8). */
export interface NormalEntry extends EntryBase {
  readonly kind: "normal";
  readonly data: Uint8Array;
}

/**
 * A change of the membership, one member at a time (thesis 4.1). `data` is for the state machine, too: names
 * and addresses.
 */
export interface ConfigEntry extends EntryBase {
  readonly kind: "config";
  readonly change: ConfigChange;
  readonly data: Uint8Array;
}

export interface ConfigChange {
  readonly kind: "add-voter" | "add-learner" | "promote" | "remove";
  /** An id is used once: late answers of one who was removed must not be taken for those of another. */
  readonly member: MemberId;
}

/** Who votes, and who only receives the log (thesis 4.2.1). */
export interface Membership {
  readonly voters: readonly MemberId[];
  readonly learners: readonly MemberId[];
}

/**
 * What must be on disk before anything that was said because of it leaves (Raft, figure 2: persistent state).
 */
export interface HardState {
  readonly term: number;
  readonly votedFor: MemberId;
  /** Not needed for safety; it saves a restarted server from having to find it out again. */
  readonly commit: number;
  /**
   * The longest time, ms, for which a leader may have been promised that this server votes for nobody else: a
   * server that begins again keeps to it, whatever its settings say now. Absent: an earlier version wrote it.
   */
  readonly promisedMs?: number | undefined;
}

/** Where a snapshot stands. Its content is the state machine's and is streamed by the host. */
export interface SnapshotMeta {
  readonly index: number;
  readonly term: number;
  readonly membership: Membership;
}

export type Message =
  | PreVoteRequest
  | PreVoteAnswer
  | VoteRequest
  | VoteAnswer
  | AppendRequest
  | AppendAnswer
  | CommitNotice
  | Heartbeat
  | HeartbeatAnswer
  | InstallSnapshot
  | SnapshotAnswer
  | TimeoutNow;

/** What only a leader sends, to who follows it. */
export type FromLeader = AppendRequest | CommitNotice | Heartbeat | InstallSnapshot;

interface MessageBase {
  readonly from: MemberId;
  readonly to: MemberId;
  readonly term: number;
}

interface CandidateLog extends MessageBase {
  readonly lastIndex: number;
  readonly lastTerm: number;
}

/**
 * Asks whether a vote would be given, without a new term (thesis 9.6). `term` is the one that it would stand
 * for.
 */
export interface PreVoteRequest extends CandidateLog {
  readonly kind: "pre-vote";
}

export interface PreVoteAnswer extends MessageBase {
  readonly kind: "pre-vote-answer";
  readonly granted: boolean;
}

export interface VoteRequest extends CandidateLog {
  readonly kind: "vote";
  /**
   * The leader asked for this election by its transfer of this number (thesis 3.10): those who still hear that
   * leader may vote as well, unless it has told them that this transfer is over. 0: nobody asked.
   */
  readonly transfer: number;
}

export interface VoteAnswer extends MessageBase {
  readonly kind: "vote-answer";
  readonly granted: boolean;
}

export interface AppendRequest extends MessageBase {
  readonly kind: "append";
  readonly previousIndex: number;
  readonly previousTerm: number;
  readonly entries: readonly Entry[];
  readonly commit: number;
}

export interface AppendAnswer extends MessageBase {
  readonly kind: "append-answer";
  /** The entry before them was missing or of another term. */
  readonly rejected: boolean;
  /** Accepted: the last index that agrees with the leader. Rejected: the `previousIndex` that was refused. */
  readonly index: number;
  /**
   * Rejected: where the leader should try next, and the term there, so that it can skip a whole term (Raft
   * 5.3).
   */
  readonly hintIndex: number;
  readonly hintTerm: number;
}

/**
 * More is committed: `index`, an entry of `indexTerm`, and all before it. Whoever has that entry has all of
 * them (Log Matching, Raft 5.3). It is not answered: whoever lacks the entry, or this message, hears of it
 * with the next append or heartbeat.
 */
export interface CommitNotice extends MessageBase {
  readonly kind: "commit";
  readonly index: number;
  readonly indexTerm: number;
}

export interface Heartbeat extends MessageBase {
  readonly kind: "heartbeat";
  /** Never more than the receiver is known to have. */
  readonly commit: number;
  /** The newest read that this round confirms leadership for (ReadIndex, thesis 6.4); 0 for none. */
  readonly round: number;
  /** Transfers up to this number are over: who stands because of one gets no vote any more. */
  readonly transfersOver: number;
}

export interface HeartbeatAnswer extends MessageBase {
  readonly kind: "heartbeat-answer";
  readonly round: number;
  /** For so long by its own clock, ms, the sender votes for nobody else (thesis 6.4.1). */
  readonly holdMs: number;
}

/**
 * The host streams the snapshot's content beside this message, and hands both over when all of it has
 * arrived. It may put a newer one in its place, with that one's `meta`.
 */
export interface InstallSnapshot extends MessageBase {
  readonly kind: "snapshot";
  readonly meta: SnapshotMeta;
}

export interface SnapshotAnswer extends MessageBase {
  readonly kind: "snapshot-answer";
  readonly rejected: boolean;
  /** The last index that agrees with the leader now. */
  readonly index: number;
}

/** The leader asks the receiver to stand for election at once (thesis 3.10). */
export interface TimeoutNow extends MessageBase {
  readonly kind: "timeout-now";
  /** Counted in the leader's term, from 1. */
  readonly transfer: number;
}

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/**
 * What is to be done after a step. `early`, `notices` and `committed` wait for no write: a leader's messages
 * may leave beside its own write to disk (thesis 10.2.1), as its own entries count towards a majority only
 * once they are on disk, too. `messages` wait until `persist` of this `Ready` **and of every one before it** is on
 * disk. So a host that takes the next `Ready` while it still writes keeps `messages` in a queue behind its
 * writes, also those of a `Ready` that has nothing to persist.
 */
export interface Ready {
  readonly persist: Persist | undefined;
  readonly early: readonly Message[];
  /** As `early`, but nobody's write waits for them: what this server's own clients wait for may go first. */
  readonly notices: readonly Message[];
  readonly messages: readonly Message[];
  /** To be applied in this order. They are committed, and on this server's own disk. */
  readonly committed: readonly Entry[];
  readonly reads: readonly ReadState[];
  /** Why messages were refused that no server can have sent: for people. */
  readonly objections: readonly string[];
  /** Set when it has changed. */
  readonly leadership: { readonly role: Role; readonly leader: MemberId; readonly term: number } | undefined;
}

/**
 * One write, durable as a whole before `persisted(sequence)` is called. Writes reach the disk in the order of
 * their numbers, and what is in one in this order: a crash may leave any beginning, with which the server
 * must be able to start.
 */
export interface Persist {
  readonly sequence: number;
  /**
   * Written with the entries, as it is small. No write is made for the commit index alone: it is found out
   * again.
   */
  readonly hardState: HardState;
  /** Replaces the whole log: the state machine is restored from it before anything later is applied. */
  readonly snapshot: SnapshotMeta | undefined;
  /** Truncate the log after `entries[0].index - 1`, then append. */
  readonly entries: readonly Entry[];
}

/**
 * Leadership was confirmed after the read was asked for: it may be answered once `index` has been applied
 * (thesis 6.4).
 */
export interface ReadState {
  readonly id: number;
  readonly index: number;
}
