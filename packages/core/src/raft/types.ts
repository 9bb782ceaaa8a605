/**
 * The vocabulary of the replicated log (Ongaro and Ousterhout, *In Search of an Understandable Consensus
 * Algorithm*, and Ongaro's thesis, *Consensus: Bridging Theory and Practice*).
 */

/** A member of the core; 64 bits as a bigint, as etcd's clients see it. 0 is `nobody`. */
export type MemberId = bigint;

export const nobody: MemberId = 0n;

export type Entry = NormalEntry | ConfigEntry;

interface EntryBase {
  readonly index: number;
  readonly term: number;
}

/** `data` is for the state machine. Empty: the no-op that begins a new leader's term (Raft 8). */
export interface NormalEntry extends EntryBase {
  readonly kind: "normal";
  readonly data: Uint8Array;
}

/** A change of one member (thesis 4.1). Its `data`, names and addresses, is also for the state machine. */
export interface ConfigEntry extends EntryBase {
  readonly kind: "config";
  readonly change: ConfigChange;
  readonly data: Uint8Array;
}

export interface ConfigChange {
  readonly kind: "add-voter" | "add-learner" | "promote" | "remove";
  /** Ids are never reused, since late answers from a removed member must not be taken for another's. */
  readonly member: MemberId;
}

/** The voters, and the learners, which only receive the log (thesis 4.2.1). */
export interface Membership {
  readonly voters: readonly MemberId[];
  readonly learners: readonly MemberId[];
}

/** Must be on disk before any message that depends on it is sent (Raft, figure 2: persistent state). */
export interface HardState {
  readonly term: number;
  readonly votedFor: MemberId;
  /** Not needed for safety; it saves a restarted server from learning it anew. */
  readonly commit: number;
  /**
   * The longest promise, ms, that this server may have made to a leader not to vote for another. A restarted
   * server keeps it, whatever its settings are now. Absent if written by an earlier version.
   */
  readonly promisedMs?: number | undefined;
}

/** Position of a snapshot. The host streams the content, which the state machine made. */
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

/** Messages that only a leader sends. */
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
 * Asks whether a vote would be granted, without a new term (thesis 9.6). `term` is the one that the
 * candidate would stand for.
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
   * The number of the transfer by which the leader asked for this election (thesis 3.10). Voters that still
   * hear that leader may vote for its candidate, unless the leader has announced that this transfer is over.
   * 0: no transfer.
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
  /** The entry before the sent ones was missing, or of another term. */
  readonly rejected: boolean;
  /** Accepted: the last index that agrees with the leader. Rejected: the `previousIndex` that was refused. */
  readonly index: number;
  /**
   * Rejected: where the leader should try next, and the term there, with which it can skip a whole term (Raft
   * 5.3).
   */
  readonly hintIndex: number;
  readonly hintTerm: number;
}

/**
 * Commits `index`, an entry of `indexTerm`, and all before it. A server with that entry has all of them (Log
 * Matching, Raft 5.3). There is no answer: a server that lacks the entry, or loses this message, learns of
 * the commit with the next append or heartbeat.
 */
export interface CommitNotice extends MessageBase {
  readonly kind: "commit";
  readonly index: number;
  readonly indexTerm: number;
}

export interface Heartbeat extends MessageBase {
  readonly kind: "heartbeat";
  /** At most the index that the receiver is known to have. */
  readonly commit: number;
  /** The newest read round, for which an answer confirms leadership (ReadIndex, thesis 6.4); 0 for none. */
  readonly round: number;
  /** Transfers up to this number are over: their candidates get no more votes. */
  readonly transfersOver: number;
}

export interface HeartbeatAnswer extends MessageBase {
  readonly kind: "heartbeat-answer";
  readonly round: number;
  /** How long the sender votes for nobody else, by its own clock, ms (thesis 6.4.1). */
  readonly holdMs: number;
}

/**
 * The host streams the snapshot's content together with this message, and the receiver gets both when
 * everything has arrived. The host may substitute a newer snapshot, with its own `meta`.
 */
export interface InstallSnapshot extends MessageBase {
  readonly kind: "snapshot";
  readonly meta: SnapshotMeta;
}

export interface SnapshotAnswer extends MessageBase {
  readonly kind: "snapshot-answer";
  readonly rejected: boolean;
  /** The last index that now agrees with the leader. */
  readonly index: number;
}

/** The leader asks the receiver to stand for election at once (thesis 3.10). */
export interface TimeoutNow extends MessageBase {
  readonly kind: "timeout-now";
  /** Numbered within the leader's term, from 1. */
  readonly transfer: number;
}

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/**
 * Work for the host after a step. `early`, `notices` and `committed` wait for no write: a leader's messages
 * may leave during its own write to disk (thesis 10.2.1), as its entries count towards a majority only once
 * they are on its own disk. `messages` wait until `persist` of this `Ready` **and of every earlier one** is
 * on disk. So a host that takes the next `Ready` during a write queues `messages` behind its writes, even
 * those of a `Ready` with nothing to persist.
 */
export interface Ready {
  readonly persist: Persist | undefined;
  readonly early: readonly Message[];
  /** Like `early`, but sent last: no write and no answer to this server's own clients waits for them. */
  readonly notices: readonly Message[];
  readonly messages: readonly Message[];
  /** To be applied in this order. These entries are committed, and on this server's own disk. */
  readonly committed: readonly Entry[];
  readonly reads: readonly ReadState[];
  /** Why messages were refused that no correct server sends; for operators. */
  readonly objections: readonly string[];
  /** Present if it has changed. */
  readonly leadership: { readonly role: Role; readonly leader: MemberId; readonly term: number } | undefined;
}

/**
 * One write, durable as a whole before `persisted(sequence)` is called. Writes reach the disk in the order of
 * their numbers, and the parts of each in the order below. A crash may leave any prefix, from which the
 * server must be able to start.
 */
export interface Persist {
  readonly sequence: number;
  /**
   * Written along with entries, as it is small. A new commit index alone causes no write, since a restarted
   * server learns it again.
   */
  readonly hardState: HardState;
  /** Replaces the whole log. The state machine must be restored from it before anything later is applied. */
  readonly snapshot: SnapshotMeta | undefined;
  /** Truncate the log after `entries[0].index - 1`, then append. */
  readonly entries: readonly Entry[];
}

/**
 * Leadership was confirmed after the read was requested. The read may be answered once `index` has been
 * applied (thesis 6.4).
 */
export interface ReadState {
  readonly id: number;
  readonly index: number;
}
