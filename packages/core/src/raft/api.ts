import type { BothClocks, Random } from "leasehold/common";
import type {
  ConfigChange,
  Entry,
  HardState,
  MemberId,
  Membership,
  Message,
  Ready,
  Role,
  SnapshotMeta,
} from "./types.js";

/**
 * The replicated log as its host sees it, on one page. `Raft` is the implementation. Two share the host's
 * part: `core/replica` makes these calls, `core/host` writes and sends what a `Ready` says.
 *
 * The host's loop: hand in whatever has come (`step`, `tick`, `propose`, `readIndex`, …), then call `ready()`
 * until it answers `undefined`, and do what each `Ready` says. Several inputs before one `ready()` make one
 * batch: one write to disk, one message to each follower. Nothing here reads a clock, waits or draws a number
 * of its own.
 */
export interface ReplicatedLog {
  /**
   * A message has arrived. What is malformed, meant for somebody else or answers nothing that was sent is
   * dropped and counted; what is out of date is dropped, or answered with the later term.
   * @throws LeaseholdError `LOG_CORRUPT` if it proves that somebody's disk has lost or changed what was
   * committed.
   */
  step(message: Message): void;

  /**
   * What the clocks say: to be told before each input that comes then. The steady clock never goes back.
   * Needed only with `holdMs`, or if what was recovered has a promise.
   */
  tellTime(now: BothClocks): void;

  /** A unit of time has passed; `electionTicks` and `heartbeatTicks` count these. */
  tick(): void;

  /**
   * Appends entries, all or none, in this order. Accepted is not committed: another leader may still replace
   * them.
   */
  propose(data: readonly Uint8Array[]): Proposed;

  /** Appends a change of the membership. One at a time: the one before must be committed (thesis 4.1). */
  proposeChange(change: ConfigChange, data: Uint8Array): Proposed;

  /**
   * Asks for the right to read (thesis 6.4). If `accepted`, then either `Ready.reads` answers with this `id`,
   * or `Ready.leadership` tells of another term or role, and a read without an answer gets none any more.
   * @param id chosen by the caller; a safe integer
   */
  readIndex(id: number): Accepted | Refused;

  /**
   * The index that another server may read at once, without a round, because it has just asked: that it asks
   * this leader says that it has not voted for a later one, which is all that its answer to a heartbeat would
   * say. Undefined unless both are a majority of the voters, which they are of three at most.
   */
  readIndexOfAsker(asker: MemberId): number | undefined;

  /**
   * The index that may be read at once, because no other leader can have been elected yet as far as clocks
   * run within ρ of real time. It is for what rests on clocks anyway. Undefined if that is not certain, or
   * `holdMs` is 0.
   */
  readIndexByClock(): number | undefined;

  /**
   * Hands leadership to another voter (thesis 3.10). Proposals are refused until it has it, or for an
   * election timeout.
   */
  transferLeader(to: MemberId): Accepted | Refused;

  /** What there is to do; `undefined` if nothing. Each thing is handed out once. */
  ready(): Ready | undefined;

  /** The write `sequence` of `Ready.persist`, and with it every one before, is on disk. */
  persisted(sequence: number): void;

  /**
   * The state machine has applied everything up to and including `index`, or was restored from a snapshot
   * there.
   */
  applied(index: number): void;

  /** What a snapshot of the state machine has to carry that was taken after `index` had been applied. */
  snapshotMeta(index: number): SnapshotMeta;

  /**
   * The snapshot is on disk: entries up to it are forgotten, but for the last `keepEntries`. Followers that
   * need one of those get a snapshot instead.
   * @param keepEntries entries kept for followers that are a little behind; 0 or more
   * @param keepBytes fewer are kept if those have more data than this; no bound by default
   */
  compact(snapshot: SnapshotMeta, keepEntries: number, keepBytes?: number): void;

  /** The transport could not deliver to a member: back to asking where its log stands, until it answers. */
  reportUnreachable(member: MemberId): void;

  /** A part of a message from a member has arrived: if that is the leader, it is there, and what it sends is long. */
  reportArriving(member: MemberId): void;

  /**
   * How the transfer of an `InstallSnapshot` ended. Every one must be reported, or its receiver gets nothing
   * more.
   */
  reportSnapshot(member: MemberId, arrived: boolean): void;

  status(): Status;

  /** The newest in the log, committed or not (thesis 4.1): another object after each change. */
  readonly membership: Membership;
}

export interface Accepted {
  readonly accepted: true;
}

/**
 * `index` is that of the first entry; the others follow it. They stand if they are committed in this `term`.
 */
export interface Appended extends Accepted {
  readonly index: number;
  readonly term: number;
}

export type Proposed = Appended | Refused;

/** Nothing was appended or begun. */
export interface Refused {
  readonly accepted: false;
  readonly reason: RefusalReason;
}

export type RefusalReason =
  /** Ask `status().leader`, if that is somebody. */
  | "not-leader"
  /** Leadership is being handed over; ask again in an election timeout. */
  | "transferring"
  /** As much as may be is uncommitted, or as many reads as may be wait for their round. Ask again later. */
  | "overloaded"
  /**
   * A membership change is not committed yet, or this leader has committed nothing of its term yet (thesis
   * 4.1).
   */
  | "change-pending"
  /** The member is there already, is not there, is no learner, is no voter, or is the last voter. */
  | "bad-change"
  /** The learner is too far behind to become a voter (thesis 4.2.1). */
  | "learner-behind";

/** What was found on disk. `founding` and `joining` make those of a server that has nothing there. */
export interface Recovered {
  readonly hardState: HardState;
  /** The newest snapshot, from which the state machine has been restored. */
  readonly snapshot: SnapshotMeta;
  /** Without gaps. Those that the snapshot covers may be among them. */
  readonly entries: readonly Entry[];
}

export interface RaftOptions {
  readonly id: MemberId;
  readonly recovered: Recovered;
  /** Spreads election timeouts, so that not all stand at once (Raft 5.2). */
  readonly random: Random;
  /**
   * The least election timeout; the actual one is drawn from `[electionTicks, 1.5 × electionTicks)`. Default
   * 10.
   */
  readonly electionTicks?: number;
  /** Less than `electionTicks`, by far. Default 1. */
  readonly heartbeatTicks?: number;
  /**
   * For so long after it has heard a leader a server holds to it, by its own clock, ms; less than an election
   * takes. Servers may differ in it, and each may begin again with another one. Default 0: nothing goes by
   * clocks.
   */
  readonly holdMs?: number;
  /** ρ, by how much the servers' steady clocks may run faster or slower than real time. Default 0.1. */
  readonly clockRateError?: number;
  readonly limits?: Partial<RaftLimits>;
}

/** What bounds memory and messages. The defaults and their reasons are in `options.ts`. */
export interface RaftLimits {
  /** Data in one append message; a single entry may be larger. */
  readonly appendBytesMax: number;
  /** Append messages that a follower has not answered. */
  readonly inflightMessagesMax: number;
  /** Data in them. */
  readonly inflightBytesMax: number;
  /** Data that a leader has accepted and that is not committed. */
  readonly uncommittedBytesMax: number;
  /** Reads that wait for their round. */
  readonly pendingReadsMax: number;
  /** Committed entries in one `Ready`. */
  readonly committedEntriesMax: number;
}

/** For people, metrics and decisions of the host. */
export interface Status {
  readonly id: MemberId;
  readonly role: Role;
  readonly term: number;
  /** Who leads in this term, as far as is known; `nobody` otherwise. */
  readonly leader: MemberId;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  readonly persistedIndex: number;
  readonly snapshotIndex: number;
  /** The newest in the log, committed or not (thesis 4.1). */
  readonly membership: Membership;
  /** Whom leadership is being handed to; `nobody` otherwise. */
  readonly transferTo: MemberId;
  /** Of the others, if this is the leader. */
  readonly followers: readonly FollowerStatus[];
  /** Messages that were malformed, meant for somebody else, or no answer to anything that was sent. */
  readonly droppedMessages: number;
}

export interface FollowerStatus {
  readonly id: MemberId;
  readonly state: "probe" | "replicate" | "snapshot";
  /** The last entry that it is known to have on disk. */
  readonly matchIndex: number;
  /** It has been heard of in the last election timeout. */
  readonly active: boolean;
  /** Ticks since it was last heard of; `Infinity` if it never was. */
  readonly silentTicks: number;
}
