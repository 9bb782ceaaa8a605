import { type BothClocks, majorityOf } from "leasehold/common";
import type { FollowerStatus, Proposed, Refused, RefusalReason } from "./api.js";
import { Follower } from "./follower.js";
import { sizeOf } from "./log.js";
import type { RaftLog } from "./log.js";
import { LeaderLease } from "./leader-lease.js";
import { changed, isMember } from "./membership.js";
import type { RaftSettings } from "./options.js";
import { reachedByMajority } from "./quorum.js";
import { Reads } from "./reads.js";
import type {
  AppendAnswer,
  CommitNotice,
  ConfigChange,
  Entry,
  HeartbeatAnswer,
  MemberId,
  Message,
  ReadState,
  SnapshotAnswer,
} from "./types.js";
import { nobody } from "./types.js";

/**
 * A learner that lacks at most this many entries catches up within moments (thesis 4.2.1), and delays no
 * commit as a voter.
 */
const promotionLagMax = 1_024;

export function refused(reason: RefusalReason): Refused {
  return { accepted: false, reason };
}

/** A leader's log, and the destinations of its messages and confirmed reads. */
export interface LeaderParts {
  readonly id: MemberId;
  readonly term: number;
  readonly log: RaftLog;
  readonly settings: RaftSettings;
  /** The last reading of the clocks. */
  readonly now: () => BothClocks;
  readonly send: (message: Message) => void;
  /** Like `send`, for messages that wait for no write. */
  readonly notify: (notice: CommitNotice) => void;
  readonly answerRead: (read: ReadState) => void;
}

/** The state of a leader, discarded at the end of its term (figure 2: volatile state on leaders). */
export class Leader {
  readonly #parts: LeaderParts;
  readonly #log: RaftLog;
  readonly #followers = new Map<MemberId, Follower>();
  readonly #reads = new Reads();
  readonly #lease: LeaderLease;
  /** Index of the no-op that begins this term. */
  readonly #firstIndex: number;
  #uncommittedBytes = 0;
  #ticksSinceHeartbeat = 0;
  #ticksSinceQuorumCheck = 0;
  #transferTo = nobody;
  /** `TimeoutNow` was sent. */
  #transferAsked = false;
  /** Transfers so far in this term. */
  #transfers = 0;
  #transferTicks = 0;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
    this.#log = parts.log;
    this.#lease = new LeaderLease(parts.settings);
    this.#firstIndex = parts.log.lastIndex + 1;
    this.#meetMembers();
    // "A leader must have the latest information on which entries are committed": it gets that by a no-op
    // (Raft 8).
    this.#append({
      kind: "normal",
      index: this.#firstIndex,
      term: parts.term,
      data: new Uint8Array(0),
    });
  }

  get transferTo(): MemberId {
    return this.#transferTo;
  }

  /** Its own removal is committed: it must step down (thesis 4.2.2). */
  get isRemoved(): boolean {
    const { current, currentIndex } = this.#log.memberships;
    return currentIndex <= this.#log.commit && !isMember(current, this.#parts.id);
  }

  followers(): FollowerStatus[] {
    return [...this.#followers.values()].map(({ id, state, matchIndex, active, silentTicks }) => ({
      id,
      state,
      matchIndex,
      active,
      silentTicks,
    }));
  }

  // Requests

  propose(data: readonly Uint8Array[]): Proposed {
    if (this.#transferTo !== nobody) return refused("transferring");
    const index = this.#log.lastIndex + 1;
    const { term } = this.#parts;
    const entries = data.map((data, offset): Entry => ({
      kind: "normal",
      index: index + offset,
      term,
      data,
    }));
    return this.#appendIfRoom(entries);
  }

  proposeChange(change: ConfigChange, data: Uint8Array): Proposed {
    if (this.#transferTo !== nobody) return refused("transferring");
    const { commit, lastIndex, memberships } = this.#log;
    if (memberships.currentIndex > commit) return refused("change-pending");
    // Otherwise two leaders of different terms could each make a change, with majorities that do not overlap
    // (the bug of 2015 that the thesis's author reported).
    if (!this.#hasCommitted) return refused("change-pending");
    if (change.member === nobody || changed(memberships.current, change) === undefined)
      return refused("bad-change");
    if (change.kind === "promote" && !this.#isNear(change.member)) return refused("learner-behind");
    const entry: Entry = {
      kind: "config",
      index: lastIndex + 1,
      term: this.#parts.term,
      change,
      data,
    };
    const proposed = this.#appendIfRoom([entry]);
    this.#meetMembers();
    return proposed;
  }

  readIndex(id: number): { readonly accepted: true } | Refused {
    if (this.#reads.count >= this.#parts.settings.limits.pendingReadsMax) return refused("overloaded");
    this.#reads.add(id);
    return { accepted: true };
  }

  /**
   * A later leader would need the vote of one of the two servers, and neither had voted when the request was
   * sent: the asker still follows the leader of its term, which is this leader in this term or an earlier
   * one; and this leader still leads. A vote leaves after any earlier request of the same server.
   */
  readIndexOfAsker(asker: MemberId): number | undefined {
    const voters = this.#voters;
    const { id } = this.#parts;
    const votes = voters.filter((voter) => voter === id || voter === asker).length;
    return this.#hasCommitted && votes >= majorityOf(voters.length) ? this.#log.commit : undefined;
  }

  readIndexByClock(): number | undefined {
    const goesByClocks = this.#parts.settings.holdMs > 0;
    return goesByClocks && this.#hasCommitted && this.#isHeldByMajority() ? this.#log.commit : undefined;
  }

  /** This server counts itself, as it votes for nobody else while it leads. */
  #isHeldByMajority(): boolean {
    const voters = this.#voters;
    const now = this.#parts.now();
    const holding = voters.filter((id) => id === this.#parts.id || this.#lease.holds(id, now));
    return holding.length >= majorityOf(voters.length);
  }

  transfer(to: MemberId): { readonly accepted: true } | Refused {
    if (to === this.#parts.id || to === this.#transferTo) return { accepted: true };
    if (this.#transferTo !== nobody) return refused("transferring");
    if (!this.#voters.includes(to)) return refused("bad-change");
    this.#transferTo = to;
    this.#transferTicks = 0;
    return { accepted: true };
  }

  // Time

  /**
   * @returns false if the leader has not heard from a majority for an election timeout, and must step down
   *   (check-quorum, thesis 6.2)
   */
  tick(): boolean {
    const { electionTicks, heartbeatTicks } = this.#parts.settings;
    this.#transferTicks += 1;
    // "If leadership transfer does not complete after about an election timeout" (thesis 3.10).
    if (this.#transferTicks >= electionTicks) this.#endTransfer();
    for (const follower of this.#followers.values()) follower.silentTicks += 1;
    this.#ticksSinceQuorumCheck += 1;
    if (this.#ticksSinceQuorumCheck >= electionTicks) {
      this.#ticksSinceQuorumCheck = 0;
      if (!this.#hearsMajority()) return false;
    }
    this.#ticksSinceHeartbeat += 1;
    if (this.#ticksSinceHeartbeat >= heartbeatTicks) {
      this.#reads.nextRound();
      this.#heartbeat();
    }
    return true;
  }

  #hearsMajority(): boolean {
    const voters = this.#voters;
    const heard = voters.filter((id) => id === this.#parts.id || this.#followers.get(id)?.active);
    for (const follower of this.#followers.values()) follower.active = false;
    return heard.length >= majorityOf(voters.length);
  }

  #heartbeat(): void {
    this.#ticksSinceHeartbeat = 0;
    const { id, now, term } = this.#parts;
    this.#lease.sent(this.#reads.current, now());
    for (const follower of this.#followers.values())
      this.#parts.send({
        kind: "heartbeat",
        from: id,
        to: follower.id,
        term,
        commit: Math.min(follower.matchIndex, this.#log.commit),
        round: this.#reads.current,
        transfersOver: this.#transfers - (this.#transferAsked ? 1 : 0),
      });
  }

  // Answers

  /**
   * Returns false if the sender is not a follower of this leader, or acknowledges entries that never existed.
   */
  receive(answer: AppendAnswer | HeartbeatAnswer | SnapshotAnswer): boolean {
    const follower = this.#followers.get(answer.from);
    if (follower === undefined) return false;
    if (answer.kind === "heartbeat-answer") {
      if (answer.round > this.#reads.current) return false;
      follower.round = Math.max(follower.round, answer.round);
      this.#lease.answered(answer);
      follower.answeredHeartbeat(this.#log.lastIndex);
      this.#confirmReads();
    } else if (answer.rejected) {
      if (answer.kind === "snapshot-answer") follower.snapshotEnded(false);
      else {
        const meeting = this.#log.lastNotAfterTerm(answer.hintIndex, answer.hintTerm);
        follower.rejected(answer.index, meeting.index);
      }
    } else {
      if (answer.index > this.#log.lastIndex) return false;
      follower.accepted(answer.index);
      this.countCommit();
    }
    follower.active = true;
    follower.silentTicks = 0;
    return true;
  }

  reportUnreachable(member: MemberId): void {
    this.#followers.get(member)?.unreachable();
  }

  reportSnapshot(member: MemberId, arrived: boolean): void {
    this.#followers.get(member)?.snapshotEnded(arrived);
  }

  /**
   * An entry has reached this server's disk or a follower's: "a majority of matchIndex[i] ≥ N, and
   * log[N].term == currentTerm".
   */
  countCommit(): void {
    const { commit, persisted } = this.#log;
    const replicated = reachedByMajority(
      this.#voters.map((id) =>
        id === this.#parts.id ? persisted : (this.#followers.get(id)?.matchIndex ?? 0),
      ),
    );
    if (replicated <= commit) return;
    // "Only log entries from the leader's current term are committed by counting replicas" (Raft 5.4.2,
    // figure 8).
    if (replicated < this.#firstIndex) return;
    this.#log.commitTo(replicated);
    this.#forgetUncommitted(commit, replicated);
    if (this.#log.memberships.currentIndex <= replicated) this.#forgetRemoved();
  }

  // Sending

  /** Sends everything that may be sent. Called once for many requests, so that they are batched. */
  flush(): void {
    this.#beginReads();
    for (const follower of this.#followers.values()) this.#sendTo(follower);
    const next = this.#followers.get(this.#transferTo);
    if (next === undefined || this.#transferAsked || next.matchIndex < this.#log.lastIndex) return;
    const { id, term } = this.#parts;
    this.#transferAsked = true;
    this.#transfers += 1;
    // From now on others may vote for the target, despite their promises.
    this.#lease.suspend();
    this.#parts.send({ kind: "timeout-now", from: id, to: next.id, term, transfer: this.#transfers });
  }

  /** `TimeoutNow` may still be in flight. From the next round on, voters know that it is void. */
  #endTransfer(): void {
    this.#transferTo = nobody;
    if (!this.#transferAsked) return;
    this.#transferAsked = false;
    this.#lease.resume();
  }

  #sendTo(follower: Follower): void {
    const log = this.#log;
    const { limits } = this.#parts.settings;
    if (!follower.hasRoom(limits) && !follower.mustProbe) return;
    if (follower.nextIndex <= log.base) {
      this.#sendSnapshot(follower);
      return;
    }
    while (follower.hasRoom(limits)) {
      const isNew = follower.nextIndex <= log.lastIndex;
      if (!isNew && !follower.mustProbe) {
        if (follower.sentCommit >= log.commit) return;
        if (follower.state === "replicate") {
          this.#sendCommit(follower);
          return;
        }
      }
      this.#sendAppend(follower, isNew ? log.slice(follower.nextIndex, limits.appendBytesMax) : []);
    }
    // The window is full and may be lost as a whole: an empty append gets an answer either way.
    if (follower.mustProbe) this.#sendAppend(follower, []);
  }

  #sendAppend(follower: Follower, entries: readonly Entry[]): void {
    const { id, term } = this.#parts;
    const { commit } = this.#log;
    const previousIndex = follower.nextIndex - 1;
    const previousTerm = this.#log.termAt(previousIndex)!;
    const to = follower.id;
    this.#parts.send({ kind: "append", from: id, to, term, previousIndex, previousTerm, entries, commit });
    let bytes = 0;
    for (const entry of entries) bytes += sizeOf(entry);
    follower.sent(previousIndex + entries.length, bytes, commit);
  }

  #sendCommit(follower: Follower): void {
    const { id, term } = this.#parts;
    const { commit: index } = this.#log;
    const indexTerm = this.#log.termAt(index)!;
    this.#parts.notify({ kind: "commit", from: id, to: follower.id, term, index, indexTerm });
    follower.sentCommit = index;
  }

  #sendSnapshot(follower: Follower): void {
    // The follower may be unreachable, and a snapshot is too large to send on the chance.
    if (!follower.active) return;
    const { id, term } = this.#parts;
    const meta = this.#log.snapshot;
    follower.sentSnapshot(meta.index);
    this.#parts.send({ kind: "snapshot", from: id, to: follower.id, term, meta });
  }

  // Reads

  #beginReads(): void {
    if (!this.#reads.areWaiting) return;
    // Before that, this leader may not know the commit index of its predecessor (thesis 6.4, step 1).
    if (!this.#hasCommitted) return;
    this.#reads.beginRound(this.#log.commit);
    this.#heartbeat();
    this.#confirmReads();
  }

  #confirmReads(): void {
    this.#reads.confirmed(this.#answeredRound(), this.#parts.answerRead);
  }

  /** The newest round of heartbeats acknowledged by a majority of the voters. */
  #answeredRound(): number {
    const { current } = this.#reads;
    return reachedByMajority(
      this.#voters.map((id) => (id === this.#parts.id ? current : (this.#followers.get(id)?.round ?? 0))),
    );
  }

  // Bookkeeping

  get #voters(): readonly MemberId[] {
    return this.#log.memberships.current.voters;
  }

  /** Whether an entry of this term is committed, and so everything before it. */
  get #hasCommitted(): boolean {
    return this.#log.commit >= this.#firstIndex;
  }

  #isNear(learner: MemberId): boolean {
    const follower = this.#followers.get(learner);
    return follower?.active === true && follower.matchIndex + promotionLagMax >= this.#log.lastIndex;
  }

  /**
   * A batch larger than the bound is accepted if nothing else is uncommitted; otherwise it could never be
   * appended.
   */
  #appendIfRoom(entries: readonly Entry[]): Proposed {
    let bytes = 0;
    for (const entry of entries) bytes += sizeOf(entry);
    const { uncommittedBytesMax } = this.#parts.settings.limits;
    if (this.#uncommittedBytes > 0 && this.#uncommittedBytes + bytes > uncommittedBytesMax)
      return refused("overloaded");
    const index = this.#log.lastIndex + 1;
    for (const entry of entries) this.#append(entry);
    return { accepted: true, index, term: this.#parts.term };
  }

  #append(entry: Entry): void {
    this.#log.append(entry);
    this.#uncommittedBytes += sizeOf(entry);
  }

  #forgetUncommitted(before: number, commit: number): void {
    const first = Math.max(before + 1, this.#firstIndex);
    for (let index = first; index <= commit; index += 1) this.#uncommittedBytes -= this.#log.sizeAt(index);
  }

  /**
   * Begins to send to new members. Removed members also get the change that removes them, so that they know.
   */
  #meetMembers(): void {
    const { voters, learners } = this.#log.memberships.current;
    for (const id of [...voters, ...learners])
      if (id !== this.#parts.id && !this.#followers.has(id))
        this.#followers.set(id, new Follower(id, this.#log.lastIndex + 1));
  }

  #forgetRemoved(): void {
    const { current } = this.#log.memberships;
    for (const id of this.#followers.keys())
      if (!isMember(current, id)) {
        this.#followers.delete(id);
        this.#lease.forget(id);
      }
    if (!current.voters.includes(this.#transferTo)) this.#endTransfer();
  }
}
