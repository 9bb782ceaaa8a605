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
 * The replicated log as its host sees it, on one page; implemented by `Raft`. The server's host has two
 * parts: `core/replica` makes these calls, and `core/host` carries out each `Ready`.
 *
 * The host's loop: pass in all inputs (`step`, `tick`, `propose`, `readIndex`, …), then call `ready()` until
 * it returns `undefined`, and carry out each `Ready`. Several inputs before one `ready()` make one batch: one
 * write to disk, one message to each follower. Nothing here reads a clock, waits or generates a random number
 * of its own.
 */
export interface ReplicatedLog {
  /**
   * Handles a message. Malformed messages, messages for another server and unexpected answers are dropped and
   * counted; outdated ones are dropped, or answered with the later term.
   * @throws LeaseholdError `LOG_CORRUPT` if the message proves that a disk has lost or changed committed
   *   entries
   */
  step(message: Message): void;

  /**
   * Sets the clock readings for the inputs that follow: call it before each of them. The steady clock never
   * goes back. Needed only with `holdMs`, or if the recovered state holds a promise.
   */
  setTime(now: BothClocks): void;

  /** A unit of time has passed: the unit of `electionTicks` and `heartbeatTicks`. */
  tick(): void;

  /**
   * Appends entries, all or none, in this order. Accepted does not mean committed: another leader may still
   * replace them.
   */
  propose(data: readonly Uint8Array[]): Proposed;

  /** Appends a membership change. The previous change must be committed (thesis 4.1). */
  proposeChange(change: ConfigChange, data: Uint8Array): Proposed;

  /**
   * Requests a read index (thesis 6.4). If it is `accepted`, either `Ready.reads` answers with this `id`, or
   * `Ready.leadership` reports another term or role, and then pending reads are never answered.
   * @param id chosen by the caller; a safe integer
   */
  readIndex(id: number): Accepted | Refused;

  /**
   * The index that another server may read at once, without a round of heartbeats. The server's request
   * proves that it has not voted for a later leader; its answer to a heartbeat would prove no more. Undefined
   * unless the two servers are a majority of the voters, so only with at most three voters.
   */
  readIndexOfAsker(asker: MemberId): number | undefined;

  /**
   * The index that may be read at once, because no other leader can have been elected yet if clocks run
   * within ρ of real time. Only for operations that rely on clocks anyway. Undefined if another leader is
   * possible, or `holdMs` is 0.
   */
  readIndexByClock(): number | undefined;

  /**
   * Transfers leadership to another voter (thesis 3.10). Proposals are refused until the transfer
   * completes, or for an election timeout.
   */
  transferLeader(to: MemberId): Accepted | Refused;

  /** The next work for the host; `undefined` if there is none. All work is returned once. */
  ready(): Ready | undefined;

  /** The write `sequence` of `Ready.persist`, and every earlier one, is on disk. */
  persisted(sequence: number): void;

  /** The state machine has applied all entries up to `index`, or was restored from a snapshot at `index`. */
  applied(index: number): void;

  /** The metadata for a snapshot of the state machine after entry `index`. */
  snapshotMeta(index: number): SnapshotMeta;

  /**
   * The snapshot is on disk: drops the entries it covers, except the last `keepEntries`. Followers that need
   * dropped entries get a snapshot instead.
   * @param keepEntries entries kept for followers that are a little behind; 0 or more
   * @param keepBytes bound of the data of those entries: fewer are kept beyond it; default: none
   */
  compact(snapshot: SnapshotMeta, keepEntries: number, keepBytes?: number): void;

  /** The transport could not deliver to a member: it is probed again until it answers. */
  reportUnreachable(member: MemberId): void;

  /**
   * A part of a message from a member has arrived. If the member is the leader, this counts as a sign of life
   * while a long message arrives.
   */
  reportArriving(member: MemberId): void;

  /**
   * Outcome of an `InstallSnapshot` transfer. Every transfer must be reported, or its receiver gets nothing
   * more.
   */
  reportSnapshot(member: MemberId, arrived: boolean): void;

  status(): Status;

  /** The newest membership in the log, committed or not (thesis 4.1). Each change makes a new object. */
  readonly membership: Membership;
}

export interface Accepted {
  readonly accepted: true;
}

/**
 * `index` is that of the first entry; the others follow it. The entries are final if committed in this
 * `term`.
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
  /** Ask `status().leader` if there is one. */
  | "not-leader"
  /** A leadership transfer is in progress; retry after an election timeout. */
  | "transferring"
  /** The bound of uncommitted data or of pending reads is reached. Retry later. */
  | "overloaded"
  /**
   * A membership change is not committed yet, or this leader has committed nothing of its term yet (thesis
   * 4.1).
   */
  | "change-pending"
  /**
   * The change does not fit the member: it already exists, doesn't exist, isn't a learner, isn't a voter, or
   * is the last voter.
   */
  | "bad-change"
  /** The learner is too far behind to become a voter (thesis 4.2.1). */
  | "learner-behind";

/** The state found on disk. `founding` and `joining` make the state of a server with an empty disk. */
export interface Recovered {
  readonly hardState: HardState;
  /** The newest snapshot, from which the state machine has been restored. */
  readonly snapshot: SnapshotMeta;
  /** Without gaps. Entries that the snapshot covers may be included. */
  readonly entries: readonly Entry[];
}

export interface RaftOptions {
  readonly id: MemberId;
  readonly recovered: Recovered;
  /** Randomizes election timeouts, so that servers rarely stand at the same time (Raft 5.2). */
  readonly random: Random;
  /**
   * The minimum election timeout; the actual one is drawn from `[electionTicks, 1.5 × electionTicks)`.
   * Default 10.
   */
  readonly electionTicks?: number;
  /** Must be far less than `electionTicks`. Default 1. */
  readonly heartbeatTicks?: number;
  /**
   * How long a server stays loyal to a leader after hearing from it, by the server's own clock, ms. Must be
   * less than the election timeout. Servers may have different values, and change them at a restart. Default
   * 0: no promises.
   */
  readonly holdMs?: number;
  /** ρ, the maximum rate error of the servers' steady clocks. Default 0.1. */
  readonly clockRateError?: number;
  readonly limits?: Partial<RaftLimits>;
}

/** Bounds of memory and messages. The defaults and their reasons are in `options.ts`. */
export interface RaftLimits {
  /** Data in one append message; a single entry may be larger. */
  readonly appendBytesMax: number;
  /** Unacknowledged append messages per follower. */
  readonly inflightMessagesMax: number;
  /** Data in unacknowledged append messages. */
  readonly inflightBytesMax: number;
  /** Uncommitted data that a leader has accepted. */
  readonly uncommittedBytesMax: number;
  /** Reads that wait for a round of heartbeats. */
  readonly pendingReadsMax: number;
  /** Committed entries in one `Ready`. */
  readonly committedEntriesMax: number;
}

/** For operators, metrics and decisions of the host. */
export interface Status {
  readonly id: MemberId;
  readonly role: Role;
  readonly term: number;
  /** The leader of this term, if known; otherwise `nobody`. */
  readonly leader: MemberId;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  readonly persistedIndex: number;
  readonly snapshotIndex: number;
  /** The newest membership in the log, committed or not (thesis 4.1). */
  readonly membership: Membership;
  /** The target of a leadership transfer; otherwise `nobody`. */
  readonly transferTo: MemberId;
  /** The other members, on a leader. */
  readonly followers: readonly FollowerStatus[];
  /** Messages that were malformed, for another server, or unexpected answers. */
  readonly droppedMessages: number;
}

export interface FollowerStatus {
  readonly id: MemberId;
  readonly state: "probe" | "replicate" | "snapshot";
  /** The last entry known to be on its disk. */
  readonly matchIndex: number;
  /** Heard from within the last election timeout. */
  readonly active: boolean;
  /** Ticks since it was last heard from; `Infinity` if never. */
  readonly silentTicks: number;
}
